import type { Json, KubeObject } from './kube-object.js';

/** What a token of {@link accountToken} claims; null for another text. */
export function readAccountToken(token: string): { readonly sub: string; readonly aud: readonly string[] } | null {
  const [, payload = '', signature] = token.split('.');
  if (signature !== 'unsigned') return null;
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { sub: string; aud: string[] };
}

/** The answer to a TokenRequest: a JSON web token without a signature. */
export function accountToken({ metadata }: KubeObject, request: Json, now: number): unknown {
  const spec = (request.spec ?? {}) as { readonly audiences?: readonly string[]; readonly expirationSeconds?: number };
  const { audiences = [], expirationSeconds = 3_600 } = spec;
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { sub: `system:serviceaccount:${metadata.namespace}:${metadata.name}`, aud: audiences };
  return {
    ...request,
    status: {
      token: `${part({ alg: 'none' })}.${part(claims)}.unsigned`,
      expirationTimestamp: new Date(now + expirationSeconds * 1_000).toISOString(),
    },
  };
}
