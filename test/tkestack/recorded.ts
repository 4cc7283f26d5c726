import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { packageFile } from '../../src/host/package-files.js';
import { devicePluginProto } from '../../src/rpc/proto.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { CHECKPOINT, GPUS, KUBELET_CHECKPOINT, type TkestackNode, type Usage } from './tkestack-node.js';

export const RECORDED_FILE = packageFile('test/tkestack/recorded.json');
const VIRTUAL_MANAGER_PATH = '/etc/gpu-manager/vm';

interface RecordedFile {
  readonly mode: string;
  /** Compressed bytes, as most of them are zero: raw deflate in base64. */
  readonly deflated: string;
}

/** What the real daemon of tkestack wrote and answered; README.md says how it was recorded. */
export interface Recorded {
  readonly gpus: typeof GPUS;
  readonly pods: readonly EmulatedPod[];
  /** Answers to Allocate, by pod and container. */
  readonly allocateAnswers: Readonly<Record<string, object>>;
  /** The text of its checkpoint. */
  readonly checkpoint: string;
  /** `kubelet_internal_checkpoint`: the emulated kubelet's file, with the bytes of the daemon's answers. */
  readonly kubeletCheckpoint: object;
  /** Files below `--virtual-manager-path`, by relative path. */
  readonly files: Readonly<Record<string, RecordedFile>>;
  readonly graph: readonly string[];
  readonly usage: Usage;
  readonly metric: readonly string[];
}

export const readRecorded = (): Recorded => JSON.parse(readFileSync(RECORDED_FILE, 'utf8')) as Recorded;

export const contentOf = ({ deflated }: RecordedFile): Buffer => inflateRawSync(Buffer.from(deflated, 'base64'));

/** Records the node on which the original runs with these pods. */
export async function record(node: TkestackNode, pods: readonly EmulatedPod[]): Promise<Recorded> {
  const { ContainerAllocateResponse } = devicePluginProto().v1beta1;
  const answers = node.kubelet.held
    .filter(({ kind }) => kind === 'core')
    .map(({ podUid, container, response }) => {
      const pod = pods.find(({ uid }) => uid === podUid)?.name ?? podUid;
      const { envs, mounts, devices, annotations } = ContainerAllocateResponse.deserialize(response);
      return [`${pod}/${container}`, { envs, mounts, devices, annotations }] as const;
    });
  const { graph } = JSON.parse(await node.answer('/graph')) as { graph: string };
  return {
    gpus: GPUS,
    pods,
    allocateAnswers: Object.fromEntries(answers),
    checkpoint: readFileSync(CHECKPOINT, 'utf8'),
    kubeletCheckpoint: JSON.parse(readFileSync(KUBELET_CHECKPOINT, 'utf8')) as object,
    files: Object.fromEntries(
      readdirSync(VIRTUAL_MANAGER_PATH, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.config'))
        .sort()
        .map((name) => [name, recordedFile(join(VIRTUAL_MANAGER_PATH, name))]),
    ),
    graph: graph.split('\n'),
    usage: await node.usage(),
    metric: (await node.answer('/metric')).trim().split('\n'),
  };
}

function recordedFile(path: string): RecordedFile {
  return {
    mode: (statSync(path).mode & 0o7777).toString(8).padStart(4, '0'),
    deflated: deflateRawSync(readFileSync(path)).toString('base64'),
  };
}

/** The recording without what differs from run to run: pids, used time and memory, and the orders of Go's maps. */
export function stable(recorded: Recorded): object {
  const { checkpoint, kubeletCheckpoint, files, graph, usage, metric, ...rest } = recorded;
  const { PodDeviceEntries } = (kubeletCheckpoint as { Data: { PodDeviceEntries: Entry[] } }).Data;
  return {
    ...rest,
    checkpoint: JSON.parse(checkpoint) as object,
    held: PodDeviceEntries.map(({ PodUID, ContainerName, ResourceName, DeviceIDs }) => ({
      container: `${PodUID}/${ContainerName}`,
      resource: ResourceName,
      amount: Object.values(DeviceIDs).flat().length,
      prefix: Object.values(DeviceIDs).flat()[0]?.replace(/\d+$/, ''),
    })),
    files: Object.fromEntries(
      Object.entries(files).map(([name, file]) => [
        name,
        // pids.config lists the pids of the container.
        name.endsWith('pids.config') ? { mode: file.mode } : { mode: file.mode, bytes: contentOf(file) },
      ]),
    ),
    graph: graph.map((line) => line.replace(/pids: \[.*?\], usedMemory: \d+/, 'pids, usedMemory')),
    usage: Object.fromEntries(
      Object.entries(usage).map(([uid, { project, spec, stat }]) => [
        uid,
        {
          project,
          spec,
          gpus: Object.entries(stat).map(([name, { dev }]) => [name, dev.map(({ card_idx: index }) => index)]),
        },
      ]),
    ),
    metric: metric.map((line) => (/^container_gpu_/.test(line) ? line.replace(/ \S+$/, '') : line)),
  };
}

interface Entry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
}
