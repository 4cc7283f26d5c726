import { systemClock } from '../../host/clock.js';
import { ALL_NODES, podsPath } from '../../kube/api-path.js';
import { listKept } from '../../kube/list-all.js';
import { readNode } from '../../kube/node.js';
import { openUserClient } from '../../kube/open-client.js';
import { readPod } from '../../kube/pod.js';
import { readGroup } from '../../kube/quota/group-object.js';
import { GROUPS_PATH } from '../../kube/quota/names.js';
import { record, text } from '../../kube/json.js';
import { asksForGpus, hasGpus } from './gpu-cluster.js';

/** Objects whose names complete a word. */
export type NamedKind = 'pods' | 'nodes' | 'groups' | 'namespaces';

/** What the arguments of commands name. */
const OF_COMMAND: Readonly<Record<string, NamedKind>> = {
  ...{ pods: 'pods', describe: 'pods', explain: 'pods', throttling: 'pods', suspend: 'pods', resume: 'pods' },
  ...{ 'limits get': 'pods', 'limits set': 'pods', 'limits release': 'pods', 'limits resize': 'pods' },
  ...{ nodes: 'nodes', top: 'nodes', doctor: 'nodes' },
  ...{ 'quota tree': 'groups', 'quota edit': 'groups' },
};

const OF_FLAG: Readonly<Record<string, NamedKind>> = {
  ...{ '-n': 'namespaces', '--namespace': 'namespaces', '--agent-namespace': 'namespaces' },
  ...{ '--group': 'groups', '--parent': 'groups' },
};

/** A shell waits for the answer after each press of the key. */
const TIME_LIMIT_MS = 2_000;

/** What the last of the words names: an argument of the command at `path`, or the value of a flag; null for neither. */
export function namedKind(path: string, words: readonly string[]): NamedKind | null {
  const before = words.at(-2) ?? '';
  if (before in OF_FLAG) return OF_FLAG[before] ?? null;
  const current = words.at(-1) ?? '';
  return current.startsWith('-') || before.startsWith('-') ? null : (OF_COMMAND[path] ?? null);
}

/** The names of these objects in the cluster that the words name. Empty if it does not answer soon. */
export async function objectNames(kind: NamedKind, words: readonly string[]): Promise<readonly string[]> {
  const valueOf = (...flags: readonly string[]): string | undefined => {
    for (const [at, word] of words.slice(0, -1).entries()) {
      if (flags.includes(word) && at + 1 < words.length - 1) return words[at + 1];
      const flag = flags.find((each) => word.startsWith(`${each}=`));
      if (flag !== undefined) return word.slice(flag.length + 1);
    }
    return undefined;
  };
  const [kubeconfig, context] = [valueOf('--kubeconfig'), valueOf('--context')];
  const access = { ...(kubeconfig === undefined ? {} : { kubeconfig }), ...(context === undefined ? {} : { context }) };
  try {
    const { client, namespace } = await openUserClient(access, systemClock);
    const api: typeof client.request = (request) => client.request({ ...request, timeoutMs: TIME_LIMIT_MS });
    const chosen = valueOf('-n', '--namespace') ?? namespace ?? 'default';
    try {
      const names = await listKept(
        { request: api },
        kind,
        pathOf(kind, chosen),
        (object) => nameOf(kind, object) ?? [],
      );
      return names.flat().sort();
    } finally {
      client.close();
    }
  } catch {
    // No completion is better than an error in the middle of a command line.
    return [];
  }
}

function pathOf(kind: NamedKind, namespace: string): string {
  switch (kind) {
    case 'pods':
      return podsPath(namespace);
    case 'nodes':
      return ALL_NODES;
    case 'groups':
      return GROUPS_PATH;
    case 'namespaces':
      return '/api/v1/namespaces';
  }
}

/** Null for an object without GPUs. */
function nameOf(kind: NamedKind, object: unknown): string | null {
  switch (kind) {
    case 'pods':
      return asksForGpus(object) ? readPod(object).name : null;
    case 'nodes': {
      const node = readNode(object);
      return node !== null && hasGpus(node) ? node.name : null;
    }
    case 'groups':
      return readGroup(object).spec.name;
    case 'namespaces':
      return text(record(record(object).metadata).name);
  }
}
