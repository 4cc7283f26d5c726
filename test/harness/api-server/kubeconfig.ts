import type { Certificate } from '../certificate.js';

/** A kubeconfig for a server with inline credentials. JSON is YAML. */
export function kubeconfig(
  server: { readonly url: string; readonly ca?: string },
  user: { readonly token?: string; readonly certificate?: Certificate },
): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: {
          server: server.url,
          ...(server.ca === undefined
            ? { 'insecure-skip-tls-verify': true }
            : { 'certificate-authority-data': base64(server.ca) }),
        },
      },
    ],
    users: [
      {
        name: 'test',
        user: {
          ...(user.token === undefined ? {} : { token: user.token }),
          ...(user.certificate === undefined
            ? {}
            : {
                'client-certificate-data': base64(user.certificate.certificate),
                'client-key-data': base64(user.certificate.key),
              }),
        },
      },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  });
}
