/** Decides to which CPUs a container with GPUs is bound. Pure. */
import { CPU_AFFINITY_KEY } from '../../gpu/annotations.js';
import { formatCpuList, parseCpuList } from './cpu-list.js';

export const CPU_AFFINITIES = ['off', 'prefer', 'strict'] as const;
/** `prefer`: CPUs near its GPUs, if there are any. `strict`: these CPUs and their memory, or the container fails. */
export type CpuAffinity = (typeof CPU_AFFINITIES)[number];

/** CPUs and NUMA nodes of the machine, as far as known. */
export interface CpuTopology {
  /** CPUs on which programs may run. */
  readonly usable: ReadonlySet<number>;
  /** CPUs of each NUMA node. */
  readonly byNode: ReadonlyMap<number, ReadonlySet<number>>;
}

/** Policy of the kubelet's CPU manager; null if its state cannot be read. */
export type CpuManagerPolicy = string | null;

export interface AffinityQuestion {
  /** `--cpu-affinity`. */
  readonly standard: CpuAffinity;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly policy: CpuManagerPolicy;
  /** CPUs to which the container is bound already, as a list; empty: not bound. */
  readonly cpus: string;
  /** NUMA nodes of its GPUs. */
  readonly numaNodes: readonly number[];
  readonly topology: CpuTopology | null;
}

export type AffinityAnswer =
  | { readonly kind: 'none'; readonly reason: string }
  | { readonly kind: 'bind'; readonly cpus: string; /* Empty: memory is not bound. */ readonly mems: string }
  | { readonly kind: 'refuse'; readonly reason: string };

const none = (reason: string): AffinityAnswer => ({ kind: 'none', reason });

export function decideAffinity(question: AffinityQuestion): AffinityAnswer {
  const { standard, policy, topology } = question;
  const affinity = wantedAffinity(standard, question.podAnnotations);
  if (affinity === 'off') return none('off');
  const numaNodes = [...new Set(question.numaNodes)].sort((a, b) => a - b);
  if (numaNodes.length === 0) return none('the platform does not report the NUMA node of the GPUs');
  if (policy === null) return none("the policy of the kubelet's CPU manager is unknown: its state cannot be read");
  // Any other policy rewrites the CPUs of every container periodically.
  if (policy !== 'none') return none(`the kubelet's CPU manager has the policy ${policy}`);
  if (topology === null) return none('the CPUs of the NUMA nodes cannot be read');
  if (topology.byNode.size < 2) return none('the node has one NUMA node');
  const near = new Set(
    numaNodes.flatMap((node) => [...(topology.byNode.get(node) ?? [])]).filter((cpu) => topology.usable.has(cpu)),
  );
  if (question.cpus !== '') return decideBound(question.cpus, near, numaNodes, affinity);
  if (near.size === 0) return unavailable(affinity, numaNodes);
  if (near.size === topology.usable.size) return none('every CPU is near its GPUs');
  return {
    kind: 'bind',
    cpus: formatCpuList(near),
    mems: affinity === 'strict' ? formatCpuList(new Set(numaNodes)) : '',
  };
}

/** Another component has bound the container. A second owner of the setting would make its creation fail. */
function decideBound(
  cpus: string,
  near: ReadonlySet<number>,
  numaNodes: readonly number[],
  affinity: CpuAffinity,
): AffinityAnswer {
  const bound = parseCpuList(cpus);
  if (bound === null || [...bound].some((cpu) => near.has(cpu))) return none('it is already bound to CPUs');
  return unavailable(affinity, numaNodes);
}

function unavailable(affinity: CpuAffinity, numaNodes: readonly number[]): AffinityAnswer {
  const reason = `no CPU of NUMA node ${numaNodes.join(' or ')} is free for it`;
  return affinity === 'strict' ? { kind: 'refuse', reason } : none(reason);
}

/** The affinity for a pod: its annotation may change the node's setting if the node binds at all. */
function wantedAffinity(standard: CpuAffinity, annotations: Readonly<Record<string, string>>): CpuAffinity {
  if (standard === 'off') return 'off';
  const wanted = CPU_AFFINITIES.find((affinity) => affinity === annotations[CPU_AFFINITY_KEY]);
  return wanted ?? standard;
}
