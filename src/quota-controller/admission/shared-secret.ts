import type { KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';

/** Values of a Secret, decoded. */
export type SecretData = Readonly<Record<string, string>>;

export interface SharedSecretOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** Of a Secret that is made; the type of one that is there stays. */
  readonly type: 'kubernetes.io/tls' | 'Opaque';
  /** What the Secret is to hold, told what it holds; null where it may stay. */
  readonly next: (data: SecretData) => Promise<SecretData | null>;
}

/** Others write too; after so many times in a row something is wrong. */
const ATTEMPTS = 5;

/**
 * What replicas share in a Secret: what it holds, or, where that is to change, what it then holds. Of replicas that
 * change it at the same time the first one decides, and the others take over what that one wrote.
 */
export async function sharedSecret({ api, namespace, name, type, next }: SharedSecretOptions): Promise<SecretData> {
  const secrets = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const path = `${secrets}/${encodeURIComponent(name)}`;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const there = await api.request({ method: 'GET', path });
    if (!there.ok && there.code !== 'not-found')
      throw new KubeError(`the Secret ${namespace}/${name} cannot be read`, there);
    const secret = there.ok ? (there.body as Secret) : null;
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
  throw new Error(`the Secret ${namespace}/${name} is changed all the time`);
}

interface Secret {
  readonly metadata: object;
  readonly type?: string;
  readonly data?: SecretData | null;
}

function mapped(data: SecretData | null, by: (text: string) => string): SecretData {
  return Object.fromEntries(Object.entries(data ?? {}).map(([name, text]) => [name, by(text)]));
}
