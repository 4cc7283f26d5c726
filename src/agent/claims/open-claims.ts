import type { CheckpointContent } from '../../gpu/ledger/checkpoint.js';
import type { ClaimGpus } from '../../gpu/ledger/gpu-mode.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { openKubeClient } from '../../kube/open-client.js';
import { withCdiSpecs, type Allocation } from '../allocator/index.js';
import type { NodeKube } from '../api-server/index.js';
import type { Gpus } from '../gpus/index.js';
import { CdiSpecs, type Interposition } from '../libraries/index.js';
import type { SliceStore } from '../slices/ports.js';
import type { Vgpu } from '../slices/index.js';
import { claimEvidence, type ClaimEvidence } from './claim-adoption.js';
import type { Patience } from './claim-preparer.js';
import { ClaimRecords, withClaimRecords } from './claim-records.js';
import type { ClaimsConfig } from './claims-config.js';
import { buildDra, type Dra, type DraOptions } from './dra.js';

export interface ClaimFilesNeeds {
  readonly config: ClaimsConfig & { readonly interposition: Interposition };
  readonly restored: CheckpointContent;
  readonly log: Log;
}

/** The claim records and CDI specifications of this node, read before the ledger is opened. */
export interface ClaimFiles {
  /** GPUs that the configuration gives to claims. */
  readonly claimGpus: ClaimGpus;
  /** Whether this run serves claims: new ones, or those of an earlier run until the last one is released. */
  readonly served: boolean;
  readonly records: ClaimRecords;
  readonly evidence: ClaimEvidence;
  /** Null if neither the device plugin nor claims use CDI. */
  readonly specs: CdiSpecs | null;
  /** Extends `slices` by the files of claims: removing a slice removes these as well. */
  extend(slices: SliceStore): SliceStore;
}

/** Reads the records of claims, and opens the directory of the CDI specifications if anything uses it. */
export async function openClaimFiles({ config, restored, log }: ClaimFilesNeeds): Promise<ClaimFiles> {
  const claimGpus = claimGpusOf(config);
  const records = new ClaimRecords(config.virtualManagerPath);
  const evidence = await claimEvidence(config, records, log);
  const served =
    claimGpus !== 'none' ||
    restored.units.length > 0 ||
    [...restored.modes.values()].includes('claims') ||
    restored.instances.length > 0 ||
    evidence.kubelet.length + evidence.records.length > 0;
  const specs = config.interposition === 'cdi' || served ? new CdiSpecs(config.cdiPath) : null;
  await specs?.open();
  const extend = (slices: SliceStore): SliceStore =>
    specs === null ? slices : withClaimRecords(withCdiSpecs(slices, specs), records);
  return { claimGpus, served, records, evidence, specs, extend };
}

function claimGpusOf({ allocation, draGpus }: ClaimsConfig): ClaimGpus {
  if (allocation === 'plugin') return 'none';
  return allocation === 'dra' ? 'every' : draGpus;
}

export interface ClaimsNeeds extends Pick<DraOptions, 'notices' | 'timed'> {
  readonly config: ClaimsConfig;
  readonly claimFiles: ClaimFiles;
  readonly allocation: Pick<Allocation, 'allocator' | 'files'>;
  /** The slices with the files of claims. */
  readonly store: SliceStore;
  readonly slices: Pick<Vgpu, 'isInUse' | 'liveLimit' | 'sharing'>;
  readonly apiServer: NodeKube | null;
  readonly gpus: Pick<Gpus, 'driver' | 'health'>;
  /** Time limits of the preparation; absent: the defaults. */
  readonly claimPatience?: Partial<Patience>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The DRA driver, attached to the slices; null if this run serves no claims. */
export async function openClaims(needs: ClaimsNeeds): Promise<Dra | null> {
  const { config, claimFiles, allocation, store, slices, apiServer, gpus, notices, timed, clock, log } = needs;
  const { specs, records, evidence, served } = claimFiles;
  if (!served || specs === null || apiServer === null) return null;
  const dra = buildDra({
    config,
    client: await openKubeClient(config.kubeconfig, clock),
    allocator: allocation.allocator,
    files: allocation.files,
    slices: store,
    specs,
    records,
    evidence,
    isInUse: (slice) => slices.isInUse(slice),
    liveLimit: (slice, gpuUuid) => slices.liveLimit(slice, gpuUuid),
    pods: apiServer.pods,
    events: apiServer.events,
    label: (labels) => apiServer.labels.label(labels),
    notices,
    timed,
    health: gpus.health,
    partitioner: gpus.driver.partitioner,
    patience: needs.claimPatience,
    clock,
    log,
  });
  slices.sharing.attach(dra.sharing);
  return dra;
}
