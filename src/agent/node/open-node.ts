import { join } from 'node:path';
import { holdings } from '../../gpu/ledger/holding.js';
import type { ClaimGpus } from '../../gpu/ledger/gpu-mode.js';
import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import { ProcessCommands } from '../../host/process-commands.js';
import { VERSION } from '../../host/version.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import type { Allocation } from '../allocator/index.js';
import type { Notices } from '../allocator/ports.js';
import type { NodeKube } from '../api-server/index.js';
import { draProblems, type Dra } from '../claims/index.js';
import type { DevicePlugin } from '../device-plugin/index.js';
import type { Gpus } from '../gpus/index.js';
import type { Nri } from '../nri/index.js';
import type { Vgpu } from '../slices/index.js';
import { GpuWatch } from './gpu-watch.js';
import { MEMORY_CONDITION, MemoryReport } from './memory-report.js';
import { healthRecord } from './health-record.js';
import { healthService } from './health-service.js';
import { nodeCounts } from './node-counts.js';
import type { NodeRecord } from './node-record.js';
import { nodeView } from './node-view.js';
import { podFacts, podWatch } from './pod-watch.js';
import type { ProcessDocument } from './process-document.js';
import { sliceProcesses, type ProcessObservation } from './slice-processes.js';
import { buildReport } from './start-report.js';
import { UseDays } from './use-days.js';
import { UseRecord, type HeldGpu } from './use-record.js';
import type { NodeView } from './view.js';

export interface NodeNeeds {
  readonly config: {
    readonly nodeName: string;
    readonly nodeLabels: ReadonlyMap<string, string>;
    readonly allowResize: boolean;
    readonly samplePeriodMs: number;
    readonly checkpointPath: string;
  };
  readonly record: NodeRecord;
  readonly gpus: Pick<Gpus, 'health' | 'healthFile'>;
  readonly apiServer: NodeKube | null;
  readonly slices: Vgpu;
  readonly allocation: Pick<Allocation, 'allocator' | 'reconciler'>;
  /** GPUs that the configuration gives to resource claims. */
  readonly claimGpus: ClaimGpus;
  readonly claims: Dra | null;
  readonly nri: Nri | null;
  readonly plugin: Pick<DevicePlugin, 'registered'>;
  readonly notices: Notices;
  readonly clock: Clock;
  readonly log: Log;
}

/** The node as a whole: its view for readers, and its reports to the ledger, the journal and the cluster. */
export interface AgentNode {
  readonly view: NodeView;
  readonly use: UseRecord;
  processes(allocation: string): Promise<ProcessDocument>;
  /** Services for operators of this node. */
  readonly services: readonly RpcService[];
  /** Health of the GPUs and the pods of this node; to be started before the ledger is compared with the kubelet. */
  readonly watches: readonly Part[];
  /** Reports to the cluster; to be started after the ledger was compared. */
  readonly reports: readonly Part[];
}

export async function openNode(needs: NodeNeeds): Promise<AgentNode> {
  const { config, record, gpus, apiServer, slices, claimGpus, claims, nri, plugin, notices, clock, log } = needs;
  const { health, healthFile } = gpus;
  const { allocator, reconciler } = needs.allocation;
  const gpuWatch = new GpuWatch({
    health,
    allocator,
    notices,
    foreignProcessCounts: () => slices.foreignProcessCounts(),
    periodMs: config.samplePeriodMs,
    clock,
    log,
  });
  const days = await UseDays.open(join(config.checkpointPath, 'use'), clock.now(), log);
  const use = new UseRecord({ days, held: () => heldGpus(allocator, apiServer) });
  const view = nodeView({
    nodeName: config.nodeName,
    version: VERSION,
    allocator,
    driverVersion: () => health.inventory.driverVersion,
    driverOutage: () => health.outage,
    health: (uuid) => (health.inventory.gpus.some((gpu) => gpu.uuid === uuid) ? health.health(uuid) : null),
    memoryEnforcer: (uuid) => slices.memoryEnforcer(uuid),
    observeSlices: () => slices.observe(),
    observeUse: () => slices.observeUse(),
    observeGpus: () => slices.observeGpus(),
    pod: (podUid) => podFacts(apiServer, podUid),
    lastUsedMs: (owner, gpuUuid) => use.lastUsedMs(owner, gpuUuid),
    counts: () => nodeCounts(record, slices, apiServer, nri, claims),
    notReady: () => [
      ...(plugin.registered ? [] : ['not registered with the kubelet']),
      ...draProblems(claims, claimGpus),
    ],
    clock,
  });
  const commands = new ProcessCommands(clock);
  const observe = (allocation: string): readonly ProcessObservation[] =>
    slices.observeProcesses(allocation).flatMap(({ gpuUuid, processes }) => {
      const gpuIndex = allocator.state.node.gpus.find(({ gpu }) => gpu.uuid === gpuUuid)?.gpu.index;
      return gpuIndex === undefined ? [] : [{ gpuUuid, gpuIndex, processes }];
    });
  return {
    view,
    use,
    processes: (allocation) => sliceProcesses(allocation, { observe, commands, clock }),
    services: [...slices.services, healthService(health, healthFile)],
    watches: [
      healthRecord(record, healthFile, health),
      gpuWatch,
      { name: 'use', start: async () => undefined, stop: () => days.write(clock.now()) },
      ...(apiServer === null ? [] : [podWatch(apiServer, reconciler)]),
    ],
    reports:
      apiServer === null
        ? []
        : [
            buildReport({ config, apiServer, allocator, health, clock }),
            memoryReport(apiServer, health, slices, clock),
          ],
  };
}

function memoryReport(apiServer: NodeKube, health: Gpus['health'], slices: Vgpu, clock: Clock): Part {
  const report = new MemoryReport({
    condition: apiServer.condition(MEMORY_CONDITION),
    gpus: () => health.inventory.gpus.map(({ index, uuid }) => ({ index, enforcer: slices.memoryEnforcer(uuid) })),
    hasDispute: () => slices.hasLimitDispute(),
    clock,
  });
  return { name: 'memory-report', start: () => report.start(), stop: () => report.stop() };
}

/** What the containers of the ledger hold now, as far as the kubelet has named them. */
function heldGpus({ state }: Allocation['allocator'], apiServer: NodeKube | null): readonly HeldGpu[] {
  return holdings(state).flatMap(({ owners, parts }): readonly HeldGpu[] => {
    const owner = owners.findLast(({ podUid }) => podUid !== '');
    if (owner === undefined) return [];
    const cores = parts.reduce((sum, part) => sum + part.cores, 0);
    const gpus = parts.flatMap(
      ({ gpuUuid }) => state.node.gpus.find(({ gpu }) => gpu.uuid === gpuUuid)?.gpu.index ?? [],
    );
    return [{ owner, cores, gpus, quotaGroup: podFacts(apiServer, owner.podUid)?.quotaGroup ?? null }];
  });
}
