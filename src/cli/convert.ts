import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseAllDocuments, type Document } from 'yaml';
import { convertForeign, type ForeignOptions } from '../claim-webhook/foreign-conversion.js';
import { readMemory, readShare, SHARE_FORM, WHOLE_GPU, type GpuShare } from '../claim-webhook/gpu-share.js';
import { fileReason } from '../host/file-reason.js';
import { StartupError } from '../host/startup-error.js';
import { record, text } from '../kube/json.js';

interface Options {
  readonly share: GpuShare;
  readonly gpuMemory?: number;
}

/** Where objects have their pod. */
const PLACES: readonly (readonly string[])[] = [
  ['spec', 'jobTemplate', 'spec', 'template'],
  ['spec', 'template'],
];

/** `gpu-manager convert`: writes manifests anew that ask other projects for GPUs. */
export function convertCommand(): Command {
  return new Command('convert')
    .description(
      'print manifests that ask for nvidia.com/gpu or shares of HAMi with requests of gpu-manager, and say what has no equal; exit code 1: something could not be converted',
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
      for (const document of documents) convertDocument(document, { share, gpuMemoryBytes: gpuMemory ?? null });
      process.stdout.write(documents.map((document) => document.toString({ lineWidth: 0 })).join(''));
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

/** Changes a document in place, so that its comments stay; a list converts each item. */
function convertDocument(document: Document, options: ForeignOptions): void {
  const object: unknown = document.toJS();
  const { items } = record(object);
  if (Array.isArray(items))
    for (const [at, item] of items.entries()) convertAt(document, ['items', String(at)], item, options);
  else convertAt(document, [], object, options);
}

function convertAt(document: Document, path: readonly string[], object: unknown, options: ForeignOptions): void {
  const { kind, metadata } = record(object);
  const place = kind === 'Pod' ? [] : PLACES.find((names) => at(object, names) !== undefined);
  if (place === undefined) return;
  const said = (note: string): void => {
    process.stderr.write(`gpu-manager: ${text(kind)} ${text(record(metadata).name)}: ${note}\n`);
  };
  const conversion = convertForeign(at(object, place), options);
  if (conversion.kind === 'unchanged') return;
  if (conversion.kind === 'refused') {
    said(`not converted: ${conversion.reason}`);
    process.exitCode = 1;
    return;
  }
  for (const { op, path: steps, value } of conversion.patch) {
    const target = [...path, ...place, ...steps.split('/').slice(1)].map((name) =>
      /^\d+$/u.test(name) ? Number(name) : name,
    );
    if (op === 'remove') document.deleteIn(target);
    else document.setIn(target, document.createNode(value));
  }
  for (const note of conversion.notes) said(note);
}

function at(object: unknown, names: readonly string[]): unknown {
  return names.reduce<unknown>((inner, name) => record(inner)[name], object);
}
