import { certificateAuthority as authority, type CertificateAuthority } from '../../src/host/certificate.js';

export type { Certificate, CertificateAuthority } from '../../src/host/certificate.js';

/** A certificate authority of the test, whose certificates are valid for a day. */
export function certificateAuthority(name = 'test-ca'): Promise<CertificateAuthority> {
  return authority(name, 1);
}
