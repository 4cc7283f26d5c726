import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { allocationId, coreIdsOf, memoryIdsOf, type Allocation } from '../../src/gpu/ledger/allocation.js';
import { isLegacyId } from '../../src/gpu/ledger/legacy.js';
import { conflicts, faultsOfPod, type Living } from '../agent/given.js';
import type { FaultNode } from './node.js';
import type { LedgerReport } from './orders.js';

/** A pod as the history knows it. */
export interface KnownPod extends Living {
  /** Containers that have been started, including init containers. */
  readonly started: Set<string>;
}

/**
 * Errors of a restarted agent: an allocation of a living pod that the ledger lacks or has otherwise; a running
 * container without its directory, limits or socket; a GPU allocated beyond its capacity or an id allocated twice.
 */
export async function lostOrDoubled(
  node: FaultNode,
  ledger: LedgerReport,
  pods: readonly KnownPod[],
): Promise<string[]> {
  const faults = conflicts(pods);
  for (const { container, parts } of ledger.legacy) {
    for (const { gpuUuid, cores } of parts) {
      const beside = ledger.allocations
        .flatMap((allocation) => allocation.parts)
        .filter((part) => part.gpuUuid === gpuUuid);
      const given = new Set(beside.flatMap((part) => part.coreIds)).size;
      if (given + cores > 100)
        faults.push(`${gpuUuid} gives ${given} cores beside the ${cores} of ${container.podUid}`);
    }
  }
  const allocations = new Map(ledger.allocations.map((allocation) => [allocation.id, allocation]));
  for (const { pod, given, started } of pods) {
    for (const container of given) {
      if (container.coreIds.length === 0) continue;
      const who = `${pod.uid}/${container.name}`;
      const allocation = allocations.get(allocationId(container.coreIds));
      if (allocation === undefined) {
        faults.push(`${who} holds ${container.coreIds.length} cores that the ledger does not know`);
        continue;
      }
      const gpus = new Set(allocation.parts.map((part) => part.gpuUuid));
      const told = (container.environment.NVIDIA_VISIBLE_DEVICES ?? '').split(',');
      if (told.length !== gpus.size || told.some((uuid) => !gpus.has(uuid)))
        faults.push(`${who} was given ${told.join()}, the ledger says ${[...gpus].join()}`);
      if (!started.has(container.name)) continue;
      // Where an init container and the one after it have the same ids, the kubelet names only the latter; a pod's UID
      // comes with the kubelet's checkpoint, which may be unreadable for a while.
      const initial = pod.initContainers.some(({ name }) => name === container.name);
      const isOwner = ({ podUid, pod: name, container: of }: Allocation['owners'][number]): boolean =>
        (podUid === pod.uid || (podUid === '' && name === pod.name)) && (initial || of === container.name);
      if (!allocation.owners.some(isOwner))
        faults.push(`${who} runs, but its allocation belongs to ${JSON.stringify(allocation.owners)}`);
      const missing = container.memoryIds.filter((id) => !memoryIdsOf(allocation).includes(id));
      if (missing.length > 0) faults.push(`${who} holds ${missing.length} memory blocks that the ledger does not know`);
      const socket = join(node.config.virtualManagerPath, allocation.id, 'vcuda.sock');
      if (!(await answers(socket))) faults.push(`nobody listens on the socket of ${who}`);
    }
    if (pod.containers.every(({ name }) => started.has(name)))
      faults.push(...(await faultsOfPod(pod, given).catch((error: Error) => [`${pod.uid}: ${error.message}`])));
  }
  return faults;
}

/**
 * Leftovers of ended pods once all of them are past the grace period: names, ids, allocations and files on which the
 * ledger, the kubelet and the disk do not agree.
 */
export async function leftOver(node: FaultNode, ledger: LedgerReport): Promise<string[]> {
  const faults: string[] = [];
  const held = { core: new Set<string>(), memory: new Set<string>() };
  const containers = new Set<string>();
  for (const { podUid, container, kind, ids } of node.kubelet.held) {
    if (ids.every(isLegacyId) || (kind !== 'core' && kind !== 'memory')) continue;
    for (const id of ids) held[kind].add(id);
    if (kind === 'core') containers.add(allocationId(ids));
    if (!node.kubelet.pods.some(({ uid }) => uid === podUid))
      faults.push(`the kubelet still names ${podUid}/${container}`);
  }
  faults.push(
    ...difference('core', held.core, ledger.allocations.flatMap(coreIdsOf)),
    ...difference('memory', held.memory, ledger.allocations.flatMap(memoryIdsOf)),
  );
  for (const { id } of ledger.allocations) if (!containers.has(id)) faults.push(`allocation ${id} is nobody's`);
  const old = new Set(node.kubelet.held.filter(({ ids }) => ids.every(isLegacyId)).map(({ podUid }) => podUid));
  const kept = new Set(ledger.legacy.map(({ container }) => container.podUid));
  if ([...old].sort().join() !== [...kept].sort().join())
    faults.push(`shares of old pods are kept for ${[...kept].join()} instead of ${[...old].join()}`);
  if (ledger.openHalves > 0) faults.push(`${ledger.openHalves} halves of requests are kept`);
  faults.push(...(await strayFiles(node, ledger)));
  return faults;
}

function difference(kind: string, kubelet: ReadonlySet<string>, ledger: readonly string[]): string[] {
  const ours = new Set(ledger);
  const lost = [...kubelet].filter((id) => !ours.has(id));
  const extra = [...ours].filter((id) => !kubelet.has(id));
  if (lost.length === 0 && extra.length === 0) return [];
  return [
    `${kind} ids: the ledger lacks ${lost.length} (${lost.slice(0, 3).join()}) that the kubelet names, and has ${extra.length} (${extra.slice(0, 3).join()}) that it does not`,
  ];
}

async function strayFiles(node: FaultNode, ledger: LedgerReport): Promise<string[]> {
  const { config } = node;
  const faults: string[] = [];
  const known = new Set([
    ...ledger.allocations.map(({ id }) => id),
    ...ledger.units.filter(({ admin }) => !admin).map(({ slice }) => slice),
    ...node.kubelet.held.filter(({ ids }) => ids.every(isLegacyId)).map(({ podUid }) => podUid),
  ]);
  const directories = (await readdir(config.virtualManagerPath)).filter((name) => name !== '.claims');
  const records = await readdir(join(config.virtualManagerPath, '.claims')).catch((): string[] => []);
  const wanted = new Set(ledger.units.flatMap(({ id }) => [id, `${id}.metadata.json`]));
  faults.push(...records.filter((name) => !wanted.has(name)).map((name) => `.claims/${name} belongs to no claim unit`));
  faults.push(...[...wanted].filter((name) => !records.includes(name)).map((name) => `.claims/${name} is missing`));
  faults.push(...directories.filter((name) => !known.has(name)).map((name) => `directory ${name} belongs to nobody`));
  faults.push(...[...known].filter((id) => !directories.includes(id)).map((id) => `allocation ${id} has no directory`));
  return [...faults, ...(await straySockets(node, ['kubelet.sock', 'vcore.sock', 'vmemory.sock']))];
}

/**
 * Files that a killed agent was writing, or whose disk failed; the next agent has to remove them. The agents that live
 * in process `pid` may be writing at this moment.
 */
export async function halfWritten({ config }: FaultNode, pid: number): Promise<string[]> {
  const names = await Promise.all(
    [config.virtualManagerPath, config.checkpointPath].map((directory) => readdir(directory, { recursive: true })),
  );
  return names
    .flat()
    .filter((name) => name.endsWith('.tmp') && !name.endsWith(`.${pid}.tmp`))
    .map((name) => `half-written ${name} was left behind`);
}

/** Other sockets in the plugin directory. */
export async function straySockets(node: FaultNode, expected: readonly string[]): Promise<string[]> {
  const sockets = (await readdir(node.config.devicePluginPath)).filter((name) => name.endsWith('.sock'));
  return sockets.sort().join() === [...expected].sort().join()
    ? []
    : [`sockets ${sockets.join()} instead of ${expected.join()}`];
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    });
    connection.on('error', () => resolve(false));
  });
}
