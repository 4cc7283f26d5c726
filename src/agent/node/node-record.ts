import type { ClaimNotices, Notices } from '../allocator/ports.js';
import type { ClaimHandler, ClaimRefusals } from '../claims/ports.js';
import { describeClaim } from '../../gpu/ledger/claim-unit.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { resizeInWords } from '../../manifests/gpu-resize.js';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import { Journal } from './journal.js';
import { CallTimes, type KubeletCall } from './call-times.js';
import type { HealthMonitor, HealthNews } from '../gpus/index.js';
import type { Clock } from '../../host/clock.js';
import type { DeviceSource } from '../device-plugin/index.js';
import type { SliceNotices } from '../slices/ports.js';

/** Records the events of the node for the display. It wraps the observers of the parts, and forwards every call. */
export class NodeRecord {
  readonly journal: Journal;
  readonly times = new CallTimes();
  readonly #refusals = new Map<string, number>();
  #failedCalls = 0;
  #overlaps = 0;

  constructor(clock: Clock) {
    this.journal = new Journal(clock);
  }

  /** Refused requests since the start, by code. */
  get refusals(): ReadonlyMap<string, number> {
    return this.#refusals;
  }

  /** Calls of the kubelet that failed without a refusal. */
  get failedCalls(): number {
    return this.#failedCalls;
  }

  /** Claims that were refused because others hold their amounts. */
  get overlaps(): number {
    return this.#overlaps;
  }

  /** Events of claims: for operators in the journal, for users on the pods. */
  claimNotices(pods: SliceNotices, node: string): ClaimNotices & ClaimRefusals {
    return {
      prepared: ({ slice, claim, devices, consumers, admin }, gpuIndexes) => {
        const cores = devices.reduce((sum, device) => sum + device.cores, 0);
        const blocks = devices.reduce((sum, device) => sum + device.memoryBlocks, 0);
        const amount = admin
          ? 'administrator access'
          : `${cores < CORES_PER_GPU ? `${cores} of ${CORES_PER_GPU} cores` : `${cores} cores`}, ${(blocks * MEMORY_BLOCK_BYTES) / 2 ** 20} MiB`;
        const [owner] = consumers;
        this.journal.note({
          level: 'info',
          kind: 'Prepared',
          message: `${describeClaim(claim)}: ${amount} of GPU ${gpuIndexes.join(', ')}`,
          allocation: slice,
          owner,
        });
        for (const consumer of consumers)
          pods.note(consumer, {
            type: 'Normal',
            reason: 'GPUAssigned',
            message: `GPU ${gpuIndexes.join(', ')} of node ${node}: ${amount}, by ${describeClaim(claim)}`,
          });
      },
      released: ({ slice, claim }) =>
        this.journal.note({
          level: 'info',
          kind: 'Freed',
          message: `${describeClaim(claim)}: its GPUs are released`,
          allocation: slice,
        }),
      refused: (_claim, reason) => {
        this.#refusals.set('bad-claim', (this.#refusals.get('bad-claim') ?? 0) + 1);
        this.journal.note({ level: 'warning', kind: 'Refused', message: reason });
      },
      overlapped: (_claim, reason, holders) => {
        this.#overlaps += 1;
        for (const consumer of new Set(holders.flatMap(({ consumers }) => consumers)))
          pods.note(consumer, { type: 'Warning', reason: 'GPUOverlap', message: reason });
      },
    };
  }

  /** Measures how long the kubelet waits for answers about claims. */
  timedClaims(handler: ClaimHandler): ClaimHandler {
    const timed = async <T>(
      call: 'prepare' | 'unprepare',
      work: () => Promise<T>,
      isRefused: (answer: T) => boolean,
    ) => {
      const started = performance.now();
      const done = (result: 'ok' | 'refused' | 'error'): void =>
        this.times.observeClaims(call, result, (performance.now() - started) / 1000);
      try {
        const answer = await work();
        done(isRefused(answer) ? 'refused' : 'ok');
        return answer;
      } catch (error) {
        this.#failedCalls += 1;
        done('error');
        throw error;
      }
    };
    return {
      // The agent checks its own socket with an empty call.
      prepare: async (claims, givenUp) =>
        claims.length === 0
          ? handler.prepare(claims, givenUp)
          : timed(
              'prepare',
              () => handler.prepare(claims, givenUp),
              (answers) => [...answers.values()].some(({ ok }) => !ok),
            ),
      unprepare: (claim) =>
        timed(
          'unprepare',
          () => handler.unprepare(claim),
          () => false,
        ),
    };
  }

  notices(next: Notices): Notices {
    return {
      refused: (kind, size, refusal) => {
        this.#refusals.set(refusal.code, (this.#refusals.get(refusal.code) ?? 0) + 1);
        this.journal.note({ level: 'warning', kind: 'Refused', message: refusal.reason });
        next.refused(kind, size, refusal);
      },
      started: (allocation, owner, gpus) => {
        const cores = allocation.parts.reduce((sum, part) => sum + part.coreIds.length, 0);
        this.journal.note({
          level: 'info',
          kind: 'Started',
          message: `${nameOf(owner)}: ${cores} cores of GPU ${gpus.map(({ index }) => index).join(', ')}`,
          allocation: allocation.id,
          owner,
        });
        next.started(allocation, owner, gpus);
      },
      renumbered: (gpus) => next.renumbered(gpus),
      freed: (allocation) => {
        const owner = allocation.owners.at(-1);
        const names = owner === undefined ? 'a container that never started' : nameOf(owner);
        this.journal.note({
          level: 'info',
          kind: 'Freed',
          message: `${names}: its GPUs are released`,
          allocation: allocation.id,
          owner,
        });
        next.freed(allocation);
      },
      resized: (owner, status) => {
        this.journal.note({
          level: status.pending === undefined ? 'info' : 'warning',
          kind: 'Resized',
          message: `${nameOf(owner)}: ${resizeInWords(status)}`,
          owner,
        });
        next.resized(owner, status);
      },
      gpuUnhealthy: (owners, gpuUuid, reason) => next.gpuUnhealthy(owners, gpuUuid, reason),
    };
  }

  sliceNotices(next: SliceNotices): SliceNotices {
    return {
      note: (owner, note) => {
        this.journal.note({
          level: note.type === 'Warning' ? 'warning' : 'info',
          kind: note.reason,
          message: owner.pod === '' ? note.message : `${owner.namespace}/${owner.pod}: ${note.message}`,
          owner,
        });
        next.note(owner, note);
      },
    };
  }

  /** The API server shows which pod was refused, a moment after the refusal. The kubelet does not name it before. */
  podRefused(owner: ContainerRef, reason: string): void {
    const message = `${owner.namespace}/${owner.pod}: ${reason}`;
    this.journal.noteOwner({ level: 'warning', kind: 'Refused', message, owner }, reason);
  }

  /** Measures how long the kubelet waits for each call. */
  timed(source: DeviceSource): DeviceSource {
    return {
      devices: (kind) => source.devices(kind),
      onDevicesChanged: (listener) => source.onDevicesChanged(listener),
      preferred: (kind, ...rest) => this.#measure('preferred', kind, () => source.preferred(kind, ...rest)),
      allocate: (kind, ids) => this.#measure('allocate', kind, () => source.allocate(kind, ids)),
      preStart: (kind, ids) => this.#measure('prestart', kind, () => source.preStart(kind, ids)),
    };
  }

  /** Records the health events of GPUs; the returned function ends this. */
  follow(health: HealthMonitor): () => void {
    return health.subscribe((news) => this.#hear(news, health));
  }

  #hear(news: HealthNews, health: HealthMonitor): void {
    const name = (uuid: string): string => {
      const gpu = health.inventory.gpus.find((one) => one.uuid === uuid);
      return gpu === undefined ? uuid : `GPU ${gpu.index}`;
    };
    switch (news.kind) {
      case 'health': {
        const { status, reason } = news.after;
        const message = `${name(news.uuid)} is ${status}${reason === null ? '' : `: ${reason}`}`;
        this.journal.note({
          level: status === 'healthy' ? 'info' : 'warning',
          kind: 'Health',
          message,
          gpuUuid: news.uuid,
        });
        break;
      }
      case 'remark':
        this.journal.note({
          level: 'warning',
          kind: 'Health',
          message: `${name(news.uuid)}: ${news.text}; the GPU stays healthy`,
          gpuUuid: news.uuid,
        });
        break;
      case 'driver':
        if (news.outage === null)
          this.journal.note({ level: 'info', kind: 'Driver', message: 'the GPU driver answers again' });
        else
          this.journal.note({
            level: 'warning',
            kind: 'Driver',
            message: `the GPU driver does not answer: ${news.outage}`,
          });
        break;
      case 'inventory':
        this.journal.note({
          level: 'warning',
          kind: 'Inventory',
          message: `the GPUs of this node changed: ${news.inventory.gpus.length} now`,
        });
        break;
    }
  }

  async #measure<T extends { readonly ok: boolean }>(
    call: KubeletCall,
    resource: string,
    work: () => Promise<T>,
  ): Promise<T> {
    const started = performance.now();
    const done = (result: 'ok' | 'refused' | 'error'): void =>
      this.times.observe(call, resource, result, (performance.now() - started) / 1000);
    try {
      const answer = await work();
      done(answer.ok ? 'ok' : 'refused');
      return answer;
    } catch (error) {
      this.#failedCalls += 1;
      done('error');
      throw error;
    }
  }
}

function nameOf({ namespace, pod, container }: ContainerRef): string {
  return pod === '' ? 'a container that the kubelet does not name' : `${namespace}/${pod}/${container}`;
}
