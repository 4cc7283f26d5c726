import { InvalidArgumentError } from 'commander';
import { CORE_LIMIT_KEY, MEMORY_LIMIT_KEY, PRIORITY_KEY, SHARE_LIMIT_KEY } from '../../gpu/annotations.js';
import { StartupError } from '../../host/startup-error.js';
import { podPath } from '../../kube/api-path.js';
import { MERGE_PATCH, type KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { readPod, type Pod } from '../../kube/pod.js';
import { valueFor } from '../../manifests/container-value.js';
import { print, type Output } from '../output.js';
import type { GpuContainer, GpuPod } from './gpu-cluster.js';

/** The limits of a running pod with their annotations; `share` is the option `--cores`. */
export const LIMIT_KEYS = {
  memory: MEMORY_LIMIT_KEY,
  share: SHARE_LIMIT_KEY,
  soft: CORE_LIMIT_KEY,
  priority: PRIORITY_KEY,
} as const;

export type LimitName = keyof typeof LIMIT_KEYS;
export const LIMIT_NAMES = Object.keys(LIMIT_KEYS) as readonly LimitName[];

/** Options of kubectl that commands for one pod refuse, and why. */
export const ONE_POD = {
  watch: 'it changes a pod once; kubectl gpu limits get -w shows the limits as they change',
  selector: 'name one pod; kubectl gpu limits get -l lists those with labels',
  allNamespaces: 'name one pod, and its namespace with -n',
};

/** The limits that the annotations of a pod request for one of its containers. */
export function askedOf({ annotations }: Pod, container: string): Readonly<Partial<Record<LimitName, string>>> {
  return Object.fromEntries(
    LIMIT_NAMES.flatMap((name) => {
      const whole = annotations[LIMIT_KEYS[name]];
      const value = whole === undefined ? undefined : valueFor(whole, container);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Keeps the text of the user if it can be read; the annotation shows what was written. */
export function checked(parse: (text: string) => unknown, expected: string): (text: string) => string {
  return (text) => {
    if (parse(text) === null) throw new InvalidArgumentError(`Expected ${expected}.`);
    return text;
  };
}

/** The pod that the user names: `name` or `pod/name`. Rejects with a `StartupError` if there is none. */
export async function readTarget(api: KubeApi, namespace: string, written: string): Promise<Pod> {
  const name = written.replace(/^pods?\//u, '');
  const answer = await api.request({ method: 'GET', path: podPath(namespace, name) });
  if (answer.ok) return readPod(answer.body);
  throw answer.code === 'not-found'
    ? new StartupError(`no pod ${name} in namespace ${namespace} (-n for another)`)
    : new KubeError(`pod ${namespace}/${name}`, answer);
}

/** Containers with GPUs of a pod: the wanted one, or all. */
export function targets({ pod, containers }: GpuPod, wanted: string | undefined): readonly GpuContainer[] {
  if (containers.length === 0) throw new StartupError(`pod ${pod.name} asks for no GPU`);
  const chosen = containers.filter(({ name }) => wanted === undefined || name === wanted);
  if (chosen.length > 0) return chosen;
  throw new StartupError(
    `pod ${pod.name} has no container ${wanted} with a GPU; there are ${containers.map(({ name }) => name).join(', ')}`,
  );
}

/** The annotation's new value: for one container, a list that keeps what the others have. */
export function merged({ pod, containers }: GpuPod, key: string, container: string | undefined, value: string): string {
  if (container === undefined) return value;
  const entries = new Map(
    containers.flatMap(({ name }) => {
      const whole = pod.annotations[key];
      const before = whole === undefined ? undefined : valueFor(whole, name);
      return before === undefined ? [] : [[name, before] as const];
    }),
  );
  entries.set(container, value);
  return [...entries].map(([name, each]) => `${name}=${each}`).join(',');
}

/** Writes annotations of a pod; null removes one. */
export async function annotate(
  api: KubeApi,
  { namespace, name, uid }: Pod,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  const answer = await api.request({
    method: 'PATCH',
    path: podPath(namespace, name),
    contentType: MERGE_PATCH,
    // With the UID, a new pod of the same name is refused.
    body: { metadata: { uid, annotations } },
  });
  if (!answer.ok) throw new KubeError(`pod ${namespace}/${name} cannot be annotated`, answer);
}

/** Prints annotations that were written, and with null those that were removed; `more`: what is known beside them. */
export async function printChanges(
  output: Output,
  { namespace, name }: Pod,
  annotations: Readonly<Record<string, string | null>>,
  more: { readonly document?: object; readonly mark?: string; readonly lines?: readonly string[] } = {},
): Promise<void> {
  const { document = {}, mark = '', lines = [] } = more;
  const changes = Object.entries(annotations).map(
    ([key, value]) => (value === null ? `${key} removed` : `${key}=${value}`) + mark,
  );
  const all = changes.length === 0 ? ['no annotation limits it'] : [...changes, ...lines];
  await print(output, {
    document: () => ({ namespace, pod: name, annotations, ...document }),
    table: () => all.map((line) => `pod/${name}: ${line}\n`).join(''),
  });
}
