/**
 * What certificates are made with. Of a package of the older module system that a program loads only when needed, a
 * bundle keeps no name but `default`: here the names that are used are written down.
 */
import 'reflect-metadata';

export {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
