import { processStat } from '../../../host/process-stat.js';
import type { GpuSource } from '../../gpus/index.js';
import type { ProcessOwners } from '../process-owners.js';
import { namespaceOf, serverOf, type MpsClient } from './mps-control.js';

/** A program of a slice that has a GPU to itself, because it is no client of the slice's namespace. */
export interface Bypass {
  readonly allocation: string;
  readonly pid: number;
  /** Name that the process chose itself. */
  readonly name: string;
  /** The namespace that it is in instead; null: none. */
  readonly elsewhere: string | null;
}

interface Needs {
  readonly source: Pick<GpuSource, 'processes'>;
  readonly owners: Pick<ProcessOwners, 'learn' | 'ownerOf'>;
  readonly clients: () => Promise<readonly MpsClient[]>;
  readonly now: () => number;
}

/**
 * Programs on a GPU that belong to slices of it, and are not in the namespaces of these. A program that finds no daemon
 * in its pipe folder, or another one, runs with the whole GPU, and neither it nor the daemon is told.
 */
export async function findBypasses(
  gpuUuid: string,
  slices: ReadonlySet<string>,
  needs: Needs,
): Promise<readonly Bypass[]> {
  const first = await suspects(gpuUuid, slices, needs);
  if (first.length === 0) return [];
  // A program that ended between the two questions is none; its successor may be.
  const second = await suspects(gpuUuid, slices, needs);
  return second.filter(({ pid }) => first.some((one) => one.pid === pid));
}

async function suspects(
  gpuUuid: string,
  slices: ReadonlySet<string>,
  { source, owners, clients, now }: Needs,
): Promise<readonly Bypass[]> {
  // In this order: a program becomes a client before it has a context.
  const pids = (await source.processes(gpuUuid)).map(({ pid }) => pid);
  const inMps = await clients();
  await owners.learn(pids, now());
  return pids.flatMap((pid): Bypass[] => {
    const allocation = owners.ownerOf(pid)?.allocation;
    if (allocation === undefined || !slices.has(allocation)) return [];
    const own = inMps.filter((client) => client.pid === pid);
    if (own.some(({ server, namespace }) => server === serverOf(gpuUuid) && namespace === namespaceOf(allocation)))
      return [];
    const stat = processStat(pid);
    if (stat === null || stat.exiting) return [];
    const [client] = own;
    const elsewhere = client === undefined ? null : `${client.server}/${client.namespace}`;
    return [{ allocation, pid, name: stat.name.replace(/[^\x20-\x7e]/gu, '?'), elsewhere }];
  });
}
