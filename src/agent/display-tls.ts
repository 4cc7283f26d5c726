import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { CertificateFiles } from '../http/certificate-files.js';
import { SelfSigned } from '../http/self-signed.js';
import type { TlsSource } from '../http/tls.js';
import type { AgentConfig } from './config.js';

/** The certificate of the agent's HTTP side: from files, self-signed, or null for plain HTTP. */
export function displayTls(
  { tls, tlsSelfSigned, nodeName }: Pick<AgentConfig, 'tls' | 'tlsSelfSigned' | 'nodeName'>,
  clock: Clock,
  log: Log,
): TlsSource | null {
  if (tls !== null) return new CertificateFiles({ ...tls, clock, log });
  return tlsSelfSigned ? new SelfSigned({ names: [nodeName], clock, log }) : null;
}
