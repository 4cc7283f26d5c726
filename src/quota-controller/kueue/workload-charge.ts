import { KubeError } from '../../kube/failure.js';
import type { KubeApi } from '../../kube/client.js';
import type { KubeObject, OwnerReference } from '../../kube/object.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { apiGroupOf, type Demand } from '../../quota/internal.js';
import type { NamespaceAccess } from '../policy/namespace-access.js';
import { isKind, type WorkloadReader } from '../workloads/workload-reader.js';
import type { KueueObjects } from '../workloads/kueue-objects.js';
import { KUEUE, WORKLOAD_KIND, type Workload } from '../workloads/kueue-workload.js';

type Labels = Readonly<Record<string, string>>;

/** What a Workload is charged for. */
export type WorkloadCharge =
  | { readonly is: 'charged'; readonly demand: Demand; readonly podSets: readonly string[]; readonly labels: Labels }
  /** Nothing is charged for it. */
  | { readonly is: 'free'; readonly reason: string }
  /** It cannot be charged as it is now. */
  | { readonly is: 'refused'; readonly reason: string };

export interface ChargeReaderOptions {
  readonly api: KubeApi;
  readonly objects: KueueObjects;
  /** Evaluates the objects that Workloads stand for. */
  readonly reader: WorkloadReader;
  readonly access: NamespaceAccess;
}

/** Reads from the API server what Workloads of Kueue are charged for. */
export class ChargeReader {
  readonly #options: ChargeReaderOptions;

  constructor(options: ChargeReaderOptions) {
    this.#options = options;
  }

  /** Null if the Workload was deleted. */
  async chargeOf(workload: Workload): Promise<WorkloadCharge | null> {
    const { api, objects, reader, access } = this.#options;
    const { namespace, name, uid } = workload;
    const answer = await api.request({ method: 'GET', path: objects.pathOf(workload) });
    if (!answer.ok && answer.code === 'not-found') return null;
    if (!answer.ok) throw new KubeError(`Workload ${namespace}/${name} cannot be read`, answer);
    const object = answer.body as KubeObject;
    if (object.metadata?.uid !== uid) return null;
    const subject = await this.#subjectOf(workload);
    const options = reader.options();
    const { groupLabel = GROUP_LABEL } = options;
    const named = groupLabels(groupLabel, { ...subject?.metadata?.labels, ...object.metadata.labels });
    const group = named[groupLabel] ?? options.defaultGroup?.(namespace) ?? '';
    const labels = { ...named, [groupLabel]: group };
    if (group === '') return { is: 'free', reason: `not charged: it has no label ${groupLabel}` };
    const missing = await access.missing(group);
    if (missing !== null) return { is: 'refused', reason: `GroupNotFound: ${missing}` };
    const refused = await access.refusal(group, namespace);
    if (refused !== null) return { is: 'refused', reason: `NamespaceNotAllowed: ${refused}` };
    const kinds = [{ ...WORKLOAD_KIND, labels: () => new Map(Object.entries(labels)) }, ...(options.kinds ?? [])];
    const manifest = { ...object, kind: WORKLOAD_KIND.kind, apiVersion: `${KUEUE}/v1` };
    const evaluation = await reader.evaluate(manifest, { ...options, kinds });
    if (!evaluation.ok) return { is: 'refused', reason: `${evaluation.code}: ${evaluation.reason}` };
    const { demand } = evaluation;
    if (demand === null) return { is: 'free', reason: `not charged: ${evaluation.reason}` };
    const owner = subject === null ? null : await this.#chargedOwner(subject, demand);
    if (owner !== null) return { is: 'free', reason: `not charged: its ${owner.kind} ${owner.name} is charged` };
    return { is: 'charged', demand, podSets: workload.podSets, labels };
  }

  /** The object that a Workload stands for: its job, or the first pod of its group. Null for an unknown kind. */
  async #subjectOf({ owners, namespace }: Workload): Promise<KubeObject | null> {
    const owner = owners.find(({ controller }) => controller === true) ?? owners[0];
    if (owner === undefined) return null;
    const { apiVersion, kind, name, uid } = owner;
    const found = await this.#options.reader.live(apiGroupOf(apiVersion), isKind(apiVersion, kind), namespace, name);
    return found === null || found.object.metadata?.uid !== uid ? null : { ...found.object, apiVersion, kind };
  }

  /** The owner that is charged for the object of a Workload, as a Deployment is for its pods; null for none. */
  async #chargedOwner({ kind = '', metadata }: KubeObject, demand: Demand): Promise<OwnerReference | null> {
    const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) return null;
    const { uid = '', namespace = '', labels = {} } = metadata ?? {};
    const charge = await this.#options.reader.ownership.chargeOf({ uid, kind, namespace, labels, owner, demand });
    return charge.kind === 'covered' || charge.demand !== demand ? owner : null;
  }
}

/** The labels that name group and types. */
function groupLabels(groupLabel: string, labels: Labels): Labels {
  return Object.fromEntries(
    Object.entries(labels).filter(
      ([name, value]) => value !== '' && (name === groupLabel || name.startsWith(`${groupLabel}/`)),
    ),
  );
}
