import { levelOfNvml, type Level } from '../../../gpu/topology/level.js';
import { topologyOfPairs, type Topology } from '../../../gpu/topology/topology.js';
import { optional, type NvmlGpu } from './nvidia-gpu.js';
import {
  MAX_LINKS,
  REMOTE_GPU,
  REMOTE_SWITCH,
  commonAncestor,
  linkRemoteBusId,
  linkRemoteType,
  linkState,
} from './connection.js';
import type { Nvml } from './nvml.js';

/** Destinations of the active links of one GPU. */
interface Links {
  /** Number of links to each GPU, by its PCI bus id. */
  readonly toGpus: ReadonlyMap<string, number>;
  /** Number of links to the NVSwitch fabric. */
  readonly toSwitches: number;
}

/** The topology of the GPUs from NVML. A pair without an answer counts as the farthest. */
export async function askTopology(nvml: Nvml, gpus: readonly NvmlGpu[]): Promise<Topology> {
  const links = await Promise.all(gpus.map((gpu) => askLinks(nvml, gpu)));
  const levels = await Promise.all(
    gpus.map((a, at) => Promise.all(gpus.slice(at + 1).map((b) => askLevel(nvml, a, b)))),
  );
  return topologyOfPairs(gpus.length, (a, b) => ({
    level: levels[a]?.[b - a - 1] ?? 'SYS',
    nvlinks: linksOfPair([gpus[a] as NvmlGpu, links[a] as Links], [gpus[b] as NvmlGpu, links[b] as Links]),
  }));
}

async function askLevel(nvml: Nvml, a: NvmlGpu, b: NvmlGpu): Promise<Level | null> {
  const value = await optional(nvml.ask(a.target, commonAncestor(a.handle, b.handle)));
  return value === null ? null : levelOfNvml(value);
}

async function askLinks(nvml: Nvml, gpu: NvmlGpu): Promise<Links> {
  const toGpus = new Map<string, number>();
  let toSwitches = 0;
  for (let link = 0; link < MAX_LINKS; link++) {
    const state = await optional(nvml.ask(gpu.target, linkState(gpu.handle, link)));
    if (state === null || state === 'absent') break;
    if (state === 'down') continue;
    const type = await optional(nvml.ask(gpu.target, linkRemoteType(gpu.handle, link)));
    if (type === REMOTE_SWITCH) toSwitches++;
    if (type !== null && type !== REMOTE_GPU) continue;
    const remote = await optional(nvml.ask(gpu.target, linkRemoteBusId(gpu.handle, link)));
    if (remote !== null) toGpus.set(remote, (toGpus.get(remote) ?? 0) + 1);
  }
  return { toGpus, toSwitches };
}

/** A link works if both ends report it. Through switches, the pair has as many links as its GPU with fewer links. */
function linksOfPair([a, fromA]: readonly [NvmlGpu, Links], [b, fromB]: readonly [NvmlGpu, Links]): number {
  const there = fromA.toGpus.get(b.details.pciBusId) ?? 0;
  const back = fromB.toGpus.get(a.details.pciBusId) ?? 0;
  return Math.min(there, back) + Math.min(fromA.toSwitches, fromB.toSwitches);
}
