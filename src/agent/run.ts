import { Allocator } from './allocator/allocator.js';
import type { Notices, PodEvidence } from './allocator/ports.js';
import type { Driver } from './gpus/driver.js';
import { HealthMonitor } from './gpus/health-monitor.js';
import { systemClock, type Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { KubeletHolders } from './device-plugin/holders.js';
import { callsOf } from './device-plugin/plugin-calls.js';
import { instanceResources } from './device-plugin/whole-instances.js';
import { DevicePlugin } from './device-plugin/plugin.js';
import type { ContainerKnowledge, Evictor, SliceNotices } from './slices/ports.js';
import { CdiSpecs } from './libraries/cdi.js';
import { openApiServer } from './api-server/connect.js';
import { checkConfig, type AgentConfig } from './config.js';
import { throughCdi, withCdiSpecs } from './allocator/cdi-devices.js';
import { checkpointFile } from './allocator/checkpoint-file.js';
import { buildDisplay } from './display/display.js';
import { nodeContainers } from './runtimes/configured-runtime.js';
import { AnnouncedContainers } from './runtimes/announced-containers.js';
import { AttachedSharing } from './slices/attached-sharing.js';
import { containerKnowledge } from './runtimes/container-knowledge.js';
import { hostLibraries } from './libraries/host-libraries.js';
import { openDriver } from './gpus/drivers.js';
import { readExtraNodes } from './allocator/extra-config.js';
import { GpuHealthFile } from './gpus/gpu-health-file.js';
import { GpuWatch, ledgerNode, readHealthPolicy } from './node/gpu-watch.js';
import type { Diagnosis } from './doctor/diagnosis.js';
import { healthRecord } from './node/health-record.js';
import { healthService } from './node/health-service.js';
import { LedgerReconciler } from './allocator/ledger-reconciler.js';
import { Lifecycle } from '../host/lifecycle.js';
import { NO_NOTICES, NO_PODS, type AgentPods } from './allocator/no-pods.js';
import { deviceFiles, simulatedDeviceFiles } from './allocator/node-files.js';
import { openNodeLibraries } from './libraries/node-libraries.js';
import { nodeCounts } from './node/node-counts.js';
import { NodeRecord } from './node/node-record.js';
import { nodeView } from './node/node-view.js';
import { restoredCheckpoint } from './allocator/restored-checkpoint.js';
import { podEvidence } from './allocator/pod-evidence.js';
import { podEvictor, podNotices } from './slices/pod-events.js';
import { podFacts, podWatch } from './node/pod-watch.js';
import { ProcessCommands } from '../host/process-commands.js';
import { VERSION } from '../host/version.js';
import { openKubeClient } from '../kube/open-client.js';
import { sliceProcesses } from './node/slice-processes.js';
import { buildNri, type Nri } from './nri/nri.js';
import { claimEvidence } from './claims/claim-adoption.js';
import { ClaimRecords, withClaimRecords } from './claims/claim-records.js';
import { buildDra, claimGpusOf, draProblems, type Dra } from './claims/dra.js';
import type { Patience } from './claims/claim-preparer.js';
import { buildReport } from './node/start-report.js';
import { buildVgpu, type Vgpu } from './slices/vgpu.js';

/** How long the ledger keeps an allocation that neither the kubelet nor a living pod confirms. */
const GRACE_MS = 10_000;

/** Objects that a test or the demo may replace. */
export interface AgentSeams {
  readonly driver?: Driver;
  readonly clock?: Clock;
  readonly graceMs?: number;
  readonly pods?: AgentPods;
  readonly notices?: Notices;
  readonly containers?: ContainerKnowledge;
  readonly evidence?: PodEvidence;
  readonly sliceNotices?: SliceNotices;
  readonly evictor?: Evictor;
  /** Time limits of the preparation of claims. */
  readonly claimPatience?: Partial<Patience>;
  /** Directory that describes CPUs and NUMA nodes, usually /sys. */
  readonly systemDirectory?: string;
  /** Checks the node for readers of the agent; only the program itself can start one. */
  readonly doctor?: () => Promise<readonly Diagnosis[]>;
}

/** The running agent. */
export interface Agent {
  readonly allocator: Allocator;
  readonly plugin: DevicePlugin;
  readonly pods: AgentPods;
  readonly vgpu: Vgpu;
  /** Null if the device plugin provides all GPUs. */
  readonly dra: Dra | null;
  /** Null without `--nri`. */
  readonly nri: Nri | null;
  readonly httpPort: () => number;
  /** Null if probes have no separate port. */
  readonly probePort: () => number | null;
  start(): Promise<void>;
  /** Stops all parts in reverse order and removes the agent's sockets. */
  stop(): Promise<void>;
}

/**
 * Builds the agent from its configuration and connects its parts. Rejects with a StartupError, before anything is
 * started, if the configuration cannot work on this machine.
 */
export async function buildAgent(config: AgentConfig, log: Log, seams: AgentSeams = {}): Promise<Agent> {
  await checkConfig(config);
  const clock = seams.clock ?? systemClock;
  const extraNodes = await readExtraNodes(config.extraConfigPath);
  const policy = await readHealthPolicy(config.healthConfigPath);
  const libraries = await openNodeLibraries(config, clock, log);
  const driver = seams.driver ?? (await openDriver(config, hostLibraries(config.hostRoot), clock, log));
  const inventory = await driver.inventory();
  const files =
    config.driver === 'sim'
      ? await simulatedDeviceFiles(config.simDevicePath, inventory.gpus, extraNodes, libraries.mounts)
      : deviceFiles(config.hostRoot, extraNodes, libraries.mounts);
  const record = new NodeRecord(clock);
  const apiServer = await openApiServer(config, clock, log, (owner, reason) => record.podRefused(owner, reason));
  const pods = seams.pods ?? apiServer?.pods ?? NO_PODS;
  const checkpoint = checkpointFile(config.checkpointPath);
  const holders = new KubeletHolders({
    podResourcesSocket: config.podResourcesSocket,
    devicePluginDirectory: config.devicePluginPath,
    pods,
    log,
  });
  const notices = record.notices(seams.notices ?? apiServer?.notices ?? NO_NOTICES);
  const healthFile = await GpuHealthFile.open({
    directory: config.checkpointPath,
    driver,
    inventory,
    policy,
    clock,
    log,
  });
  const health = new HealthMonitor({ driver, inventory, policy, restored: healthFile.restored, clock });
  const containers = nodeContainers(config);
  const announced = new AnnouncedContainers();
  const sharing = new AttachedSharing();
  const vgpu = buildVgpu({
    path: config.virtualManagerPath,
    usageTmpfs: config.usageTmpfs,
    controlLibraries: libraries.controlLibraries,
    knowledge: seams.containers ?? containerKnowledge(containers, announced, log),
    uninjected: (allocation) => announced.problemsOf(allocation),
    limitAnnotations: pods,
    sharing,
    notices: record.sliceNotices(seams.sliceNotices ?? podNotices(apiServer)),
    evictor: seams.evictor ?? podEvictor(apiServer),
    auditPolicy: config.auditPolicy,
    memoryOversubscription: config.memoryOversubscription,
    allowUnenforced: config.allowUnenforced,
    driver,
    driverVersion: () => inventory.driverVersion,
    gpus: () => health.inventory.gpus.map(({ uuid }) => uuid),
    samplePeriodMs: config.samplePeriodMs,
    ...(config.lowPriorityFloor === undefined ? {} : { lowFloor: config.lowPriorityFloor }),
    clock,
    log,
  });
  const node = ledgerNode(
    inventory,
    { shareMode: config.shareMode, wholeInstances: config.migStrategy === 'whole' },
    health.unusable(),
  );
  const claimGpus = claimGpusOf(config);
  const restored = await restoredCheckpoint(checkpoint, node, log);
  const records = new ClaimRecords(config.virtualManagerPath);
  const evidence = await claimEvidence(config, records, log);
  // GPUs that return to the device plugin are served to claims until the last claim is released.
  const servesClaims =
    claimGpus !== 'none' ||
    restored.units.length > 0 ||
    [...restored.modes.values()].includes('claims') ||
    evidence.kubelet.length + evidence.records.length > 0;
  const specs = config.interposition === 'cdi' || servesClaims ? new CdiSpecs(config.cdiPath) : null;
  await specs?.open();
  const slices = specs === null ? vgpu.store : withClaimRecords(withCdiSpecs(vgpu.store, specs), records);
  const allocator = new Allocator(
    {
      node,
      pods,
      holders,
      evidence: seams.evidence ?? podEvidence(containers, clock),
      slices,
      legacy: vgpu.legacy,
      checkpoint,
      files,
      notices,
      clock,
      log,
      graceMs: seams.graceMs ?? GRACE_MS,
      claimGpus,
    },
    restored,
  );
  const gpuWatch = new GpuWatch({
    health,
    allocator,
    notices,
    foreignProcessCounts: () => vgpu.foreignProcessCounts(),
    periodMs: config.samplePeriodMs,
    clock,
    log,
  });
  const devices = record.timed(
    specs === null || config.interposition !== 'cdi'
      ? allocator
      : throughCdi(allocator, { specs, kubeletVersion: () => apiServer?.labels.kubeletVersion ?? null, log }),
  );
  const plugin = new DevicePlugin({
    directory: config.pluginProxyPath ?? config.devicePluginPath,
    calls: { core: callsOf('core', devices), memory: callsOf('memory', devices) },
    others: () => instanceResources(() => allocator.wholeInstances(), devices),
    clock,
    log,
  });
  const dra =
    servesClaims && specs !== null && apiServer !== null
      ? buildDra({
          config,
          client: await openKubeClient(config.kubeconfig, clock),
          allocator,
          slices,
          specs,
          records,
          evidence,
          files,
          isInUse: (slice) => (vgpu.slices.started.get(slice)?.sessions.size ?? 0) > 0,
          liveLimit: (slice, gpuUuid) => {
            const open = vgpu.slices.started.get(slice);
            const at = open?.spec.devices.findIndex(({ uuid }) => uuid === gpuUuid) ?? -1;
            return open?.limits.live[at] ?? null;
          },
          pods: apiServer.pods,
          events: apiServer.events,
          notices: record.claimNotices(seams.sliceNotices ?? podNotices(apiServer), config.nodeName),
          timed: (handler) => record.timedClaims(handler),
          health,
          label: (labels) => apiServer.labels.label(labels),
          ...(seams.claimPatience === undefined ? {} : { patience: seams.claimPatience }),
          clock,
          log,
        })
      : null;
  const nri: Nri | null =
    config.nriSocket === null
      ? null
      : buildNri({
          config,
          allocator,
          claims: dra?.claims ?? null,
          sample: (slice) => vgpu.sampleNow(slice),
          graceMs: seams.graceMs ?? GRACE_MS,
          journal: record.journal,
          ...(seams.systemDirectory === undefined ? {} : { systemDirectory: seams.systemDirectory }),
          clock,
          log,
        });
  if (dra !== null) sharing.attach(dra.sharing);
  if (nri !== null) announced.attach(nri.containers);
  const view = nodeView({
    nodeName: config.nodeName,
    version: VERSION,
    allocator,
    driverVersion: () => health.inventory.driverVersion,
    driverOutage: () => health.outage,
    health: (uuid) => (health.inventory.gpus.some((gpu) => gpu.uuid === uuid) ? health.health(uuid) : null),
    observeSlices: () => vgpu.observe(),
    observeUse: () => vgpu.observeUse(),
    observeGpus: () => vgpu.observeGpus(),
    pod: (podUid) => podFacts(apiServer, podUid),
    counts: () => nodeCounts(record, vgpu, apiServer, nri, dra),
    notReady: () => [...(plugin.registered ? [] : ['not registered with the kubelet']), ...draProblems(dra, claimGpus)],
    clock,
  });
  const commands = new ProcessCommands(clock);
  const processesOn = (allocation: string) =>
    vgpu.observeProcesses(allocation).flatMap(({ gpuUuid, processes }) => {
      const gpuIndex = allocator.state.node.gpus.find(({ gpu }) => gpu.uuid === gpuUuid)?.gpu.index;
      return gpuIndex === undefined ? [] : [{ gpuUuid, gpuIndex, processes }];
    });
  const display = await buildDisplay({
    config,
    view,
    record,
    apiServer,
    processes: (allocation) => sliceProcesses(allocation, { observe: processesOn, commands, clock }),
    services: [vgpu.limitsService, healthService(health, healthFile)],
    doctor: seams.doctor ?? null,
    clock,
    log,
  });

  const reconciler = new LedgerReconciler({ allocator, periodMs: config.allocationCheckPeriodMs, clock, log });
  const lifecycle = new Lifecycle(
    [
      { name: 'driver', start: async () => undefined, stop: () => driver.close() },
      ...(libraries.part === null ? [] : [libraries.part]),
      healthRecord(record, healthFile, health),
      { name: 'gpu-watch', start: () => gpuWatch.start(), stop: () => gpuWatch.stop() },
      ...(apiServer === null ? [] : [podWatch(apiServer, reconciler)]),
      { name: 'holders', start: async () => undefined, stop: async () => holders.close() },
      { name: 'containers', start: async () => undefined, stop: async () => containers.close() },
      vgpu.part,
      ...(dra === null ? [] : [dra.restore]),
      reconciler,
      ...(dra === null ? [] : [dra.serve]),
      // NRI starts late: it asks about containers, which the ledger must know first.
      ...(nri === null ? [] : [nri.part]),
      ...(apiServer === null ? [] : [buildReport({ config, apiServer, allocator, health, clock })]),
      ...display.parts,
      { name: 'device-plugin', start: () => plugin.start(), stop: () => plugin.stop() },
    ],
    log,
  );
  return {
    allocator,
    plugin,
    pods,
    vgpu,
    dra,
    nri,
    httpPort: display.httpPort,
    probePort: display.probePort,
    start: () => lifecycle.start(),
    stop: () => lifecycle.stop(),
  };
}
