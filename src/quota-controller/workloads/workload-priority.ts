import type { KubeApi } from '../../kube/client.js';
import { list, record, text } from '../../kube/json.js';
import type { KubeObject } from '../../kube/object.js';
import { ManifestReader } from '../../manifests/manifest-reader.js';
import { apiGroupOf } from '../../quota/internal.js';
import type { ServedKind } from './kinds.js';

const PRIORITY_CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';

/** Priority classes of a cluster. */
interface PriorityClasses {
  readonly values: ReadonlyMap<string, number>;
  /** Priority of pods without a class. */
  readonly normal: number;
}

/**
 * The priority that the pods of a workload will have: of its pod templates the highest, by their field or their
 * PriorityClass; 0 for a class that does not exist, and where classes cannot be listed.
 */
export async function workloadPriority(
  api: KubeApi,
  kinds: readonly ServedKind[],
  object: KubeObject,
): Promise<number> {
  const apiGroup = apiGroupOf(object.apiVersion ?? '');
  const kind = kinds.find(({ evaluator }) => evaluator.kind === object.kind && evaluator.apiGroup === apiGroup);
  if (kind === undefined) return 0;
  const context = { lookup: () => undefined, chargeSurge: false, matchingNodes: () => null };
  const templates = kind.evaluator.pods(new ManifestReader(), object, context);
  if (templates.length === 0) return 0;
  let classes: PriorityClasses | null = null;
  let highest = -Infinity;
  for (const { template } of templates) {
    const { priority, priorityClassName } = record(record(template).spec);
    if (typeof priority !== 'number') classes ??= await readClasses(api);
    const named = text(priorityClassName);
    const ofClass = named === '' ? classes?.normal : (classes?.values.get(named) ?? SYSTEM[named]);
    highest = Math.max(highest, typeof priority === 'number' ? priority : (ofClass ?? 0));
  }
  return highest;
}

/** Classes that every API server has. */
const SYSTEM: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

async function readClasses(api: KubeApi): Promise<PriorityClasses> {
  const answer = await api.request({ method: 'GET', path: PRIORITY_CLASSES });
  const classes = answer.ok ? list(record(answer.body).items).map(record) : [];
  const valueOf = ({ value }: (typeof classes)[number]): number => (typeof value === 'number' ? value : 0);
  const normal = classes.find(({ globalDefault }) => globalDefault === true);
  return {
    values: new Map(classes.map((each) => [text(record(each.metadata).name), valueOf(each)])),
    normal: normal === undefined ? 0 : valueOf(normal),
  };
}
