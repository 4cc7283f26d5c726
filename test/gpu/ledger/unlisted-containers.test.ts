import { test } from 'tap';
import { allocate } from '../../../src/gpu/ledger/allocate.js';
import { memoryIdsOf, type Allocation } from '../../../src/gpu/ledger/allocation.js';
import { isPairingUnsure, pairedByKubelet } from '../../../src/gpu/ledger/candidates.js';
import { openAfterRestart } from '../../../src/gpu/ledger/open-gpu.js';
import { prefer } from '../../../src/gpu/ledger/prefer.js';
import { observeOffered } from '../../../src/gpu/ledger/release.js';
import { emptyLedger, type LedgerState } from '../../../src/gpu/ledger/state.js';
import type { ResourceKind } from '../../../src/gpu/resources.js';
import { nodeOf } from './kubelet-model.js';

const NODE = nodeOf(3, 16);
const idsOf = (kind: ResourceKind): readonly string[] =>
  NODE.gpus.flatMap(({ gpu }) =>
    Array.from({ length: kind === 'core' ? 100 : 16 }, (_, number) =>
      NODE.ids.encode({ kind, gpuUuid: gpu.uuid, number }),
    ),
  );

/** A kubelet whose pods are unknown and that lists no container, as if all were init containers. */
class UnlistedContainers {
  state: LedgerState = emptyLedger(NODE);
  readonly #held = new Set<string>();

  /** GetPreferredAllocation and Allocate. */
  request(kind: ResourceKind, size: number): Allocation | null {
    const available = idsOf(kind).filter((id) => !this.#held.has(id));
    this.state = observeOffered(this.state, available, []).state;
    if (isPairingUnsure(this.state, null, { kind, size })) this.state = pairedByKubelet(this.state, []);
    const preferred = prefer(this.state, { kind, available, mustInclude: [], size, pending: null });
    if (!preferred.ok) throw new Error(preferred.reason);
    return this.allocate(kind, preferred.ids);
  }

  /** Allocate alone: the kubelet has enough ids of the init container. */
  allocate(kind: ResourceKind, ids: readonly string[]): Allocation | null {
    const answer = allocate(this.state, { kind, ids, pending: null, now: 1 });
    if (!answer.ok) throw new Error(answer.reason);
    this.state = answer.state;
    for (const id of ids) this.#held.add(id);
    return answer.allocation;
  }

  /** Everything is over, while the agent is away. */
  endAll(): void {
    this.#held.clear();
    this.state = { ...this.state, open: openAfterRestart(this.state.allocations.values(), this.state.halves) };
  }
}

test('memory of an init container goes with its cores, although a pod ended unseen before it', (t) => {
  const kubelet = new UnlistedContainers();
  kubelet.request('memory', 4);
  kubelet.request('core', 100);
  kubelet.endAll();
  kubelet.request('memory', 4);
  const allocation = kubelet.request('core', 10);
  t.not(allocation?.isGpuOpen, true, 'the answer for the cores names a GPU');
  t.equal(allocation === null ? 0 : memoryIdsOf(allocation).length, 4);
  t.end();
});

test('cores after memory that was given to whole GPUs name their GPU', (t) => {
  const kubelet = new UnlistedContainers();
  kubelet.request('core', 200);
  kubelet.request('memory', 4);
  const reused = [...kubelet.state.allocations.values()][0]?.parts[0]?.coreIds ?? [];
  kubelet.allocate('core', reused.slice(0, 10));
  kubelet.request('memory', 8);
  const allocation = kubelet.allocate('core', reused.slice(10, 20));
  t.not(allocation?.isGpuOpen, true);
  t.end();
});
