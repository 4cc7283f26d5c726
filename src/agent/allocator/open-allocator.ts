import type { ClaimGpus } from '../../gpu/ledger/gpu-mode.js';
import { prefer } from '../../gpu/ledger/prefer.js';
import { observeOffered } from '../../gpu/ledger/release.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import type { DeviceSource } from '../device-plugin/index.js';
import type { Gpus } from '../gpus/index.js';
import type { CdiSpecs, Interposition, NodeLibraries } from '../libraries/index.js';
import type { NodeContainers } from '../runtimes/index.js';
import type { LegacyStore, SliceStore } from '../slices/ports.js';
import { Allocator } from './allocator.js';
import { throughCdi } from './cdi-devices.js';
import { readExtraNodes } from './extra-config.js';
import { LedgerReconciler } from './ledger-reconciler.js';
import { deviceFiles, simulatedDeviceFiles } from './node-files.js';
import type { RestoredLedger } from './open-ledger.js';
import { podEvidence } from './pod-evidence.js';
import type { AgentPods } from './no-pods.js';
import type { HolderKnowledge, NodeFiles, Notices, PodEvidence } from './ports.js';
import { Resizes } from './resizes.js';

/** The flags of the agent that concern allocations. */
export interface AllocatorConfig {
  readonly driver: string;
  readonly simDevicePath: string;
  readonly hostRoot: string;
  readonly extraConfigPath: string | null;
  readonly interposition: Interposition;
  readonly allocationCheckPeriodMs: number;
  readonly allowResize: boolean;
  readonly allowSuspend: boolean;
}

export interface AllocatorNeeds {
  readonly config: AllocatorConfig;
  readonly ledger: RestoredLedger;
  readonly gpus: Pick<Gpus, 'inventory'>;
  readonly libraries: Pick<NodeLibraries, 'mounts'>;
  readonly slices: SliceStore;
  readonly legacy: LegacyStore;
  /** GPUs that the configuration gives to resource claims. */
  readonly claimGpus: ClaimGpus;
  /** Null if neither the device plugin nor claims use CDI. */
  readonly specs: CdiSpecs | null;
  /** Null while it is unknown. */
  readonly kubeletVersion: () => string | null;
  readonly pods: AgentPods;
  readonly holders: HolderKnowledge;
  readonly containers: NodeContainers;
  /** Absent: that of `containers`. */
  readonly evidence?: PodEvidence;
  readonly notices: Notices;
  /** How long the ledger keeps an allocation that neither the kubelet nor a living pod confirms. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The allocator with the objects that are built around it. */
export interface Allocation {
  readonly allocator: Allocator;
  readonly files: NodeFiles;
  /** The allocator for the device plugin. */
  readonly devices: DeviceSource;
  /** Decides about preferred ids without effect, and without knowledge of pods. */
  readonly preview: DeviceSource['preferred'];
  readonly reconciler: LedgerReconciler;
  readonly resizes: Resizes;
}

/** Opens the ledger's queue. Rejects with a StartupError if `--extra-config` cannot be read. */
export async function openAllocator(needs: AllocatorNeeds): Promise<Allocation> {
  const { config, ledger, pods, holders, slices, legacy, notices, specs, clock, log, graceMs, claimGpus } = needs;
  const files = await nodeFiles(needs);
  const { node, checkpoint, restored } = ledger;
  const evidence = needs.evidence ?? podEvidence(needs.containers, clock);
  const allocator = new Allocator(
    { node, pods, holders, evidence, slices, legacy, checkpoint, files, notices, clock, log, graceMs, claimGpus },
    restored,
  );
  return {
    allocator,
    files,
    devices:
      specs === null || config.interposition !== 'cdi'
        ? allocator
        : throughCdi(allocator, { specs, kubeletVersion: needs.kubeletVersion, log }),
    preview: async (kind, available, mustInclude, size) => {
      const { state } = observeOffered(allocator.state, available, mustInclude);
      return prefer(state, { kind, available, mustInclude, size, pending: null });
    },
    resizes: new Resizes({
      ledger: allocator.ledger,
      isAllowed: config.allowResize,
      pods,
      slices,
      notices,
      clock,
      log,
    }),
    reconciler: new LedgerReconciler({ allocator, periodMs: config.allocationCheckPeriodMs, clock, log }),
  };
}

async function nodeFiles({ config, gpus, libraries, log }: AllocatorNeeds): Promise<NodeFiles> {
  const extraNodes = await readExtraNodes(config.extraConfigPath);
  // A call can ask for its GPU only through the control library, so containers with whole GPUs get it too.
  const mounts: NodeFiles['libraryMounts'] = (limited) => libraries.mounts(limited || config.allowSuspend);
  if (config.driver === 'sim') return simulatedDeviceFiles(config.simDevicePath, gpus.inventory, extraNodes, mounts);
  const files = deviceFiles(config.hostRoot, extraNodes, mounts, log);
  // For the containers that an earlier version started.
  files.commonNodes();
  for (const gpu of gpus.inventory.gpus) files.gpuNodes(gpu);
  return files;
}
