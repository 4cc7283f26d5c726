import type { KubeApi } from '../client.js';
import { KubeError } from '../failure.js';

/** Values of a Secret, decoded. */
export type SecretData = Readonly<Record<string, string>>;

export interface SharedSecretOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** Type of a Secret that is created; an existing Secret keeps its type. */
  readonly type: 'kubernetes.io/tls' | 'Opaque';
  /** Returns the wanted values, given the present ones; null to keep these. */
  readonly next: (data: SecretData) => Promise<SecretData | null>;
}

/** Maximum number of consecutive conflicts with other writers. */
const ATTEMPTS = 5;

/**
 * Reads or changes a Secret that replicas share, and returns its values. When replicas change it at the same time, the
 * first write wins and the other replicas use its values.
 */
export async function sharedSecret({ api, namespace, name, type, next }: SharedSecretOptions): Promise<SecretData> {
  const secrets = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const path = `${secrets}/${encodeURIComponent(name)}`;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const existing = await api.request({ method: 'GET', path });
    if (!existing.ok && existing.code !== 'not-found')
      throw new KubeError(`the Secret ${namespace}/${name} cannot be read`, existing);
    const secret = existing.ok ? (existing.body as Secret) : null;
    const present = mapped(secret?.data ?? {}, (text) => Buffer.from(text, 'base64').toString('utf8'));
    const wanted = await next(present);
    if (wanted === null) return present;
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: secret?.type ?? type,
      metadata: { ...secret?.metadata, namespace, name },
      data: mapped(wanted, (text) => Buffer.from(text).toString('base64')),
    };
    const answer =
      secret === null
        ? await api.request({ method: 'POST', path: secrets, body })
        : await api.request({ method: 'PUT', path, body });
    if (answer.ok) return wanted;
    if (!['conflict', 'already-exists', 'not-found'].includes(answer.code))
      throw new KubeError(`the Secret ${namespace}/${name} cannot be written`, answer);
  }
  throw new Error(`the Secret ${namespace}/${name} cannot be written: ${ATTEMPTS} attempts met a concurrent change`);
}

interface Secret {
  readonly metadata: object;
  readonly type?: string;
  readonly data?: SecretData | null;
}

function mapped(data: SecretData | null, by: (text: string) => string): SecretData {
  return Object.fromEntries(Object.entries(data ?? {}).map(([name, text]) => [name, by(text)]));
}
