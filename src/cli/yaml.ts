/** The part of the library for YAML that prints; `host/x509.ts` says why a name of a package is written down. */
export { stringify } from 'yaml';
