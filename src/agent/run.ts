import { systemClock } from '../host/clock.js';
import { Lifecycle } from '../host/lifecycle.js';
import type { Log } from '../host/log.js';
import { NO_NOTICES, NO_PODS, openAllocator, openLedger } from './allocator/index.js';
import type { Agent, AgentSeams } from './agent.js';
import { openApiServer } from './api-server/index.js';
import { openClaimFiles, openClaims } from './claims/index.js';
import { checkConfig, type AgentConfig } from './config.js';
import { openDevicePlugin, openHolders } from './device-plugin/index.js';
import { openDisplay } from './display/index.js';
import { findCudaLibrary, openGpus } from './gpus/index.js';
import { hostLibraries, openLibraries } from './libraries/index.js';
import { NodeRecord, openNode } from './node/index.js';
import { openNri } from './nri/index.js';
import { openRuntimes } from './runtimes/index.js';
import { openSlices, podEvictor, podNotices } from './slices/index.js';

/** How long the ledger keeps an allocation that neither the kubelet nor a living pod confirms. */
const GRACE_MS = 10_000;

/**
 * Opens the parts of the agent from the lowest floor up: a part gets what it needs from the parts before it. Rejects
 * with a StartupError, before anything is started, if the configuration cannot work on this machine.
 */
export async function buildAgent(config: AgentConfig, log: Log, seams: AgentSeams = {}): Promise<Agent> {
  await checkConfig(config);
  const { clock = systemClock, graceMs = GRACE_MS } = seams;
  const common = { ...seams, config, clock, log, graceMs };
  const record = new NodeRecord(clock);

  const libraries = await openLibraries(common);
  const host = hostLibraries(config.hostRoot);
  const gpus = await openGpus({ ...common, hostLibraries: host });
  const cudaLibrary = await findCudaLibrary(config, host);
  const onRefused: NodeRecord['podRefused'] = (owner, reason) => record.podRefused(owner, reason);
  const apiServer = await openApiServer({ ...common, onRefused });
  const runtimes = await openRuntimes(common);
  const pods = seams.pods ?? apiServer?.pods ?? NO_PODS;
  const { holders, part: holdersPart } = await openHolders({ ...common, pods });
  const notices = record.notices(seams.notices ?? apiServer?.notices ?? NO_NOTICES);
  const podEvents = seams.sliceNotices ?? podNotices(apiServer);

  const evictor = seams.evictor ?? podEvictor(apiServer);
  const sliceNotices = record.sliceNotices(podEvents);
  const slices = await openSlices({
    ...common,
    libraries,
    gpus,
    cudaLibrary,
    runtimes,
    pods,
    notices: sliceNotices,
    evictor,
  });

  const ledger = await openLedger({ ...common, gpus });
  const claimFiles = await openClaimFiles({ ...common, restored: ledger.restored });
  const { claimGpus, specs } = claimFiles;
  const store = claimFiles.extend(slices.store);
  const allocation = await openAllocator({
    ...common,
    ledger,
    gpus,
    libraries,
    slices: store,
    legacy: slices.legacy,
    claimGpus,
    specs,
    pods,
    holders,
    notices,
    containers: runtimes.containers,
    kubeletVersion: () => apiServer?.labels.kubeletVersion ?? null,
  });
  const { allocator, reconciler, resizes } = allocation;

  const claims = await openClaims({
    ...common,
    claimFiles,
    allocation,
    store,
    slices,
    apiServer,
    gpus,
    notices: record.claimNotices(podEvents, config.nodeName),
    timed: (handler) => record.timedClaims(handler),
  });
  const nri = await openNri({
    ...common,
    announced: runtimes.announced,
    allocator,
    claims: claims?.claims ?? null,
    journal: record.journal,
    startGate: slices.startGate,
    sample: (slice) => slices.sampleNow(slice),
  });
  const wholeInstances = () => allocator.wholeInstances();
  const devices = record.timed(allocation.devices);
  const plugin = await openDevicePlugin({ ...common, devices, preview: allocation.preview, wholeInstances });

  const parts = { record, gpus, apiServer, slices, allocation, claimGpus, claims, nri, plugin, notices };
  const node = await openNode({ ...common, ...parts });
  const display = await openDisplay({ ...common, ...node, record, apiServer, doctor: seams.doctor ?? null });

  const lifecycle = new Lifecycle(
    [
      gpus.part,
      libraries.part,
      ...node.watches,
      holdersPart,
      runtimes.part,
      slices.part,
      // The ledger is reconciled between the two: claims are restored before, and served after.
      ...(claims === null ? [reconciler] : [claims.restore, reconciler, claims.serve]),
      resizes,
      // NRI starts last: the runtime asks about containers that the ledger must know.
      ...(nri === null ? [] : [nri.part]),
      ...node.reports,
      ...display.parts,
      plugin,
    ],
    log,
  );
  return {
    allocator,
    plugin,
    pods,
    vgpu: slices,
    dra: claims,
    nri,
    httpPort: display.httpPort,
    probePort: display.probePort,
    start: () => lifecycle.start(),
    stop: () => lifecycle.stop(),
  };
}
