import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseAllDocuments, type Document } from 'yaml';
import { convertForeign, type ForeignOptions } from '../claim-webhook/foreign-conversion.js';
import { readMemory, readShare, SHARE_FORM, WHOLE_GPU, type GpuShare } from '../claim-webhook/gpu-share.js';
import { fileReason } from '../host/file-reason.js';
import { StartupError } from '../host/startup-error.js';
import { annotationProblem } from '../kube/annotation-problem.js';
import { record, text } from '../kube/json.js';
import { readPod } from '../kube/pod.js';
import { gpuRequestOf } from '../kube/pod-gpus.js';
import { convertProposed } from '../kube/quota/proposed-object.js';

interface Options {
  readonly share: GpuShare;
  readonly gpuMemory?: number;
}

/** Where objects have their pod. */
const PLACES: readonly (readonly string[])[] = [
  ['spec', 'jobTemplate', 'spec', 'template'],
  ['spec', 'template'],
];

/** `gpu-manager convert`: writes manifests of other projects anew. */
export function convertCommand(): Command {
  return new Command('convert')
    .description(
      'print manifests that ask for nvidia.com/gpu or shares of HAMi, KAI or Run:ai with requests of gpu-manager, and Consumers of kube-arbitrator as those of gpu-manager, and say what has no equal; exit code 1: something could not be converted',
    )
    .argument('<file>', 'YAML or JSON; - reads standard input')
    .addOption(
      new Option('--share <amounts>', `what one nvidia.com/gpu without amounts of HAMi stands for: ${SHARE_FORM}`)
        .default(WHOLE_GPU, 'whole')
        .argParser((written: string) => {
          const share = readShare(written);
          if (share === null) throw new InvalidArgumentError(`Expected ${SHARE_FORM}.`);
          return share;
        }),
    )
    .addOption(gpuMemoryOption())
    .action(async (file: string, { share, gpuMemory }: Options) => {
      const documents = parseAllDocuments(await contentOf(file));
      const broken = documents.flatMap((document) => document.errors)[0];
      if (broken !== undefined) throw new StartupError(`${file} is not valid YAML or JSON: ${broken.message}`);
      const options = { share, gpuMemoryBytes: gpuMemory ?? null };
      const kept = documents.filter((document) => convertDocument(document, options));
      process.stdout.write(kept.map((document) => document.toString({ lineWidth: 0 })).join(''));
    });
}

export function gpuMemoryOption(): Option {
  return new Option(
    '--gpu-memory <amount>',
    'memory of a GPU, for requests in percent of it, such as 80GiB; without it, they are refused',
  ).argParser((written: string) => {
    const memory = readMemory(written);
    if (memory === null || 'percent' in memory) throw new InvalidArgumentError('Expected an amount such as 80GiB.');
    return memory.bytes;
  });
}

async function contentOf(file: string): Promise<string> {
  if (file !== '-')
    return readFile(file, 'utf8').catch((error: unknown) => {
      throw new StartupError(`${file} cannot be read: ${fileReason(error)}`);
    });
  const chunks: string[] = [];
  for await (const chunk of process.stdin.setEncoding('utf8')) chunks.push(chunk as string);
  return chunks.join('');
}

/**
 * Changes a document in place, so that its comments stay; a list converts each item. False for a document without an
 * object that users write.
 */
function convertDocument(document: Document, options: ForeignOptions): boolean {
  const object: unknown = document.toJS();
  const { items } = record(object);
  if (!Array.isArray(items)) return convertAt(document, [], object, options);
  const left = items.flatMap((item, at) => (convertAt(document, ['items', String(at)], item, options) ? [] : [at]));
  for (const at of left.reverse()) document.deleteIn(['items', at]);
  return true;
}

function convertAt(document: Document, path: readonly string[], object: unknown, options: ForeignOptions): boolean {
  const { kind, metadata } = record(object);
  const said = (note: string): void => {
    process.stderr.write(`gpu-manager: ${text(kind)} ${text(record(metadata).name)}: ${note}\n`);
  };
  const proposed = convertProposed(object);
  if (proposed.kind === 'left-out') {
    said(proposed.reason);
    return false;
  }
  if (proposed.kind === 'renamed') {
    const steps = path.map(step);
    document.setIn([...steps, 'apiVersion'], proposed.apiVersion);
    document.setIn([...steps, 'metadata', 'name'], proposed.name);
    document.deleteIn([...steps, 'metadata', 'namespace']);
    for (const note of proposed.notes) said(note);
    return true;
  }
  convertPodAt(document, path, object, options, said);
  return true;
}

function convertPodAt(
  document: Document,
  path: readonly string[],
  object: unknown,
  options: ForeignOptions,
  said: (note: string) => void,
): void {
  const place = record(object).kind === 'Pod' ? [] : PLACES.find((names) => at(object, names) !== undefined);
  if (place === undefined) return;
  const failed = (reason: string): void => {
    said(reason);
    process.exitCode = 1;
  };
  const pod = at(object, place);
  const conversion = convertForeign(pod, options);
  if (conversion.kind === 'refused') return failed(`not converted: ${conversion.reason}`);
  if (conversion.kind === 'unchanged') {
    const problem = asksForGpus(pod) ? annotationProblem(readPod(pod)) : null;
    return problem === null ? undefined : failed(problem);
  }
  for (const { op, path: steps, value } of conversion.patch) {
    const target = [...path, ...place, ...steps.split('/').slice(1)].map(step);
    if (op === 'remove') document.deleteIn(target);
    else document.setIn(target, document.createNode(value));
  }
  for (const note of conversion.notes) said(note);
}

/** Whether a pod asks for GPUs by our own resources. */
function asksForGpus(pod: unknown): boolean {
  const { containers, initContainers } = readPod(pod);
  return [...initContainers, ...containers].some((container) => {
    const { cores, memoryBlocks } = gpuRequestOf(container);
    return cores + memoryBlocks > 0;
  });
}

/** A step of a path in a document: a number is the index of a list. */
function step(name: string): string | number {
  return /^\d+$/u.test(name) ? Number(name) : name;
}

function at(object: unknown, names: readonly string[]): unknown {
  return names.reduce<unknown>((inner, name) => record(inner)[name], object);
}
