import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of the keys and certificates that the API server of a test cluster needs; created once below `directory`. */
export function certificates(directory: string) {
  const at = (name: string): string => join(directory, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'ignore' });
  const paths = {
    ca: at('ca.crt'),
    cert: at('api.crt'),
    key: at('api.key'),
    saKey: at('sa.key'),
    saPublic: at('sa.pub'),
    tokens: at('tokens.csv'),
  };
  if (existsSync(paths.tokens)) return paths;
  mkdirSync(directory, { recursive: true });
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    at('ca.key'),
    '-out',
    paths.ca,
    '-subj',
    '/CN=test-ca',
    '-days',
    '3650',
  );
  openssl(
    'req',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    paths.key,
    '-out',
    at('api.csr'),
    '-subj',
    '/CN=kube-apiserver',
  );
  writeFileSync(at('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\n');
  openssl(
    'x509',
    '-req',
    '-in',
    at('api.csr'),
    '-CA',
    paths.ca,
    '-CAkey',
    at('ca.key'),
    '-CAcreateserial',
    '-days',
    '3650',
    '-extfile',
    at('names'),
    '-out',
    paths.cert,
  );
  openssl('genrsa', '-out', paths.saKey, '2048');
  openssl('rsa', '-in', paths.saKey, '-pubout', '-out', paths.saPublic);
  writeFileSync(paths.tokens, 'admintoken,admin,admin,"system:masters"\n');
  return paths;
}
