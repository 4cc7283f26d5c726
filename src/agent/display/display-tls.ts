import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { CertificateFiles } from '../../http/certificate-files.js';
import { SelfSigned } from '../../http/self-signed.js';
import type { TlsSource } from '../../http/tls.js';

/** The flags of the agent that concern the certificate of its HTTP side. */
export interface DisplayTlsConfig {
  /** PEM files of the HTTP side; null: plain HTTP, or a self-signed certificate. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Without files: serve HTTPS with a certificate that the agent creates. */
  readonly tlsSelfSigned: boolean;
  readonly nodeName: string;
}

/** The certificate of the agent's HTTP side: from files, self-signed, or null for plain HTTP. */
export function displayTls(
  { tls, tlsSelfSigned, nodeName }: DisplayTlsConfig,
  clock: Clock,
  log: Log,
): TlsSource | null {
  if (tls !== null) return new CertificateFiles({ ...tls, clock, log });
  return tlsSelfSigned ? new SelfSigned({ names: [nodeName], clock, log }) : null;
}
