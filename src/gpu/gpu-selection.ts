import {
  COMPUTE_KEY,
  EQUAL_GPUS_KEY,
  EXCLUDED_MODELS_KEY,
  EXCLUDED_UUIDS_KEY,
  GPU_POLICY_KEY,
  GPUS_KEY,
  MODELS_KEY,
  NODE_POLICY_KEY,
  SAME_NUMA_KEY,
  SUSPENDABLE_KEY,
  UUIDS_KEY,
} from './annotations.js';
import { MAX_DEVICES } from '../abi/vgpu-abi.js';
import type { Gpu } from './gpu.js';

const BIND_POLICIES = ['binpack', 'spread'] as const;

/** `binpack` fills what is in use already; `spread` takes what is used least. */
export type BindPolicy = (typeof BIND_POLICIES)[number];

/** What the annotations of a pod say about its GPUs. The extender and the node agent both choose by it. */
export interface GpuSelection {
  /** Parts of model names in upper case: the model of each GPU contains one of them. Empty: any model. */
  readonly models: readonly string[];
  /** Parts of model names in upper case: the model of no GPU contains one of them. */
  readonly excludedModels: readonly string[];
  /** UUIDs of GPUs or instances; that of a GPU stands for its instances as well. Empty: any GPU. */
  readonly uuids: readonly string[];
  readonly excludedUuids: readonly string[];
  /** Whether several GPUs of a container must be of one model and memory. */
  readonly equalGpus: boolean;
  /** Whether several GPUs of a container must be near one NUMA node. */
  readonly sameNuma: boolean;
  /** On how many GPUs each request is, in equal parts: the most of all containers; 1 without the annotation. */
  readonly gpus: number;
  /** The same for each container by name, 1 for one that is not named; absent: alike for all. */
  readonly gpusOf?: Readonly<Record<string, number>>;
  /** `sm`: GPUs whose multiprocessors are shared, and no others; absent: GPUs whose time is shared. */
  readonly compute?: 'sm';
  /** Which GPU with room a part of a GPU gets. */
  readonly gpuPolicy: BindPolicy;
  /** Which node the pod gets; null for the extender's own policy. */
  readonly nodePolicy: BindPolicy | null;
  /** Its containers may be suspended, so they may get what a GPU offers beyond its real capacity; absent: no. */
  readonly suspendable?: true;
}

/** The selection of a pod without such annotations. */
export const ANY_GPUS: GpuSelection = {
  models: [],
  excludedModels: [],
  uuids: [],
  excludedUuids: [],
  equalGpus: false,
  sameNuma: false,
  gpus: 1,
  gpuPolicy: 'binpack',
  nodePolicy: null,
};

export type ReadSelection =
  { readonly ok: true; readonly selection: GpuSelection } | { readonly ok: false; readonly reason: string };

/** The annotations that make a selection. */
export const SELECTION_KEYS = [
  COMPUTE_KEY,
  MODELS_KEY,
  EXCLUDED_MODELS_KEY,
  UUIDS_KEY,
  EXCLUDED_UUIDS_KEY,
  EQUAL_GPUS_KEY,
  SAME_NUMA_KEY,
  GPUS_KEY,
  GPU_POLICY_KEY,
  NODE_POLICY_KEY,
  SUSPENDABLE_KEY,
];

const MOST_ENTRIES = 64;
const MOST_CHARACTERS = 128;

/** Reads the annotations of a pod: `ANY_GPUS` without any, and a refusal that names the first invalid one. */
export function readSelection(annotation: (key: string) => string | undefined): ReadSelection {
  if (SELECTION_KEYS.every((key) => annotation(key) === undefined)) return { ok: true, selection: ANY_GPUS };
  const problems: string[] = [];
  const listed = (key: string, wrong: (entry: string) => string | null): readonly string[] => {
    const text = annotation(key);
    if (text === undefined) return [];
    const entries = text.split(',').map((entry) => entry.trim());
    const problem =
      entries.length > MOST_ENTRIES
        ? `${entries.length} entries; at most ${MOST_ENTRIES} are supported`
        : (entries.map(wrong).find((one) => one !== null) ?? null);
    if (problem !== null) problems.push(`annotation ${key} has ${problem}`);
    return entries;
  };
  const chosen = <T extends string>(key: string, choices: readonly T[]): T | undefined => {
    const text = annotation(key);
    const choice = choices.find((one) => one === text);
    if (text !== undefined && choice === undefined)
      problems.push(
        `annotation ${key} is ${quoted(text)}; it can be ${choices.map((one) => JSON.stringify(one)).join(' or ')}`,
      );
    return choice;
  };
  const counts = (key: string): Pick<GpuSelection, 'gpus' | 'gpusOf'> => {
    const text = annotation(key) ?? '1';
    if (isCount(text)) return { gpus: Number(text) };
    const named = text.split(',').map((entry) => /^\s*([^=\s]+)=(\S+)\s*$/.exec(entry) ?? ['', '', '']);
    const gpusOf = Object.fromEntries(named.map(([, name = '', count]) => [name, Number(count)]));
    if (named.every(([, , count = '']) => isCount(count)) && Object.keys(gpusOf).length === named.length)
      return { gpus: Math.max(...Object.values(gpusOf)), gpusOf };
    problems.push(
      `annotation ${key} is ${quoted(text)}; it can be a number of GPUs from 1 to ${MAX_DEVICES}, or one for each container: main=2,side=1`,
    );
    return { gpus: 1 };
  };
  const models = (key: string): readonly string[] => listed(key, wrongModel).map((entry) => entry.toUpperCase());
  const required = (key: string): boolean => chosen(key, ['required', 'preferred']) === 'required';
  const selection: GpuSelection = {
    models: models(MODELS_KEY),
    excludedModels: models(EXCLUDED_MODELS_KEY),
    uuids: listed(UUIDS_KEY, wrongUuid),
    excludedUuids: listed(EXCLUDED_UUIDS_KEY, wrongUuid),
    equalGpus: required(EQUAL_GPUS_KEY),
    sameNuma: required(SAME_NUMA_KEY),
    ...counts(GPUS_KEY),
    ...(chosen(COMPUTE_KEY, ['time', 'sm']) === 'sm' ? { compute: 'sm' } : {}),
    gpuPolicy: chosen(GPU_POLICY_KEY, BIND_POLICIES) ?? 'binpack',
    nodePolicy: chosen(NODE_POLICY_KEY, BIND_POLICIES) ?? null,
    ...(chosen(SUSPENDABLE_KEY, ['true', 'false']) === 'true' ? { suspendable: true as const } : {}),
  };
  const [problem] = problems;
  if (problem !== undefined) return { ok: false, reason: problem };
  return { ok: true, selection: selectionKey(selection) === selectionKey(ANY_GPUS) ? ANY_GPUS : selection };
}

function isCount(text: string): boolean {
  return /^[1-9]\d?$/.test(text) && Number(text) <= MAX_DEVICES;
}

/** What the annotations say about one container of the pod. */
export function selectionFor(selection: GpuSelection, container: string): GpuSelection {
  const { gpusOf, ...others } = selection;
  if (gpusOf === undefined) return selection;
  return { ...others, gpus: Object.hasOwn(gpusOf, container) ? (gpusOf[container] ?? 1) : 1 };
}

function wrongModel(entry: string): string | null {
  if (entry === '') return 'an empty entry; expected names of GPU models or parts of them, separated by commas';
  return entry.length <= MOST_CHARACTERS ? null : `an entry of more than ${MOST_CHARACTERS} characters`;
}

function wrongUuid(entry: string): string | null {
  return /^(GPU|MIG)-[\w/-]{1,120}$/.test(entry)
    ? null
    : `the entry ${quoted(entry)}; expected UUIDs (GPU-... or MIG-..., nvidia-smi -L lists them), separated by commas`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS)}...`);
}

/** Equal for equal selections. */
export function selectionKey(selection: GpuSelection): string {
  return JSON.stringify(selection);
}

/** Whether a container may have this GPU. */
export function allows(selection: GpuSelection, { model, uuid, instance, compute }: Gpu): boolean {
  if (compute !== selection.compute) return false;
  if (selection === ANY_GPUS) return true;
  const { models, excludedModels, uuids, excludedUuids } = selection;
  const name = model.toUpperCase();
  const isNamed = (list: readonly string[]): boolean =>
    list.includes(uuid) || (instance !== undefined && list.includes(instance.parentUuid));
  return (
    (models.length === 0 || models.some((part) => name.includes(part))) &&
    !excludedModels.some((part) => name.includes(part)) &&
    (uuids.length === 0 || isNamed(uuids)) &&
    !isNamed(excludedUuids)
  );
}

/** Several GPUs of a container must have equal kinds. A GPU of an unknown NUMA node is near no other one. */
export function kindOf({ equalGpus, sameNuma }: GpuSelection, { index, model, memoryBytes, numaNode }: Gpu): string {
  const near = numaNode === null ? `alone ${index}` : String(numaNode);
  return `${equalGpus ? `${memoryBytes} ${model}` : ''}@${sameNuma ? near : ''}`;
}

const MOST_IN_WORDS = 3;

/** ` (annotation KEY: VALUE, ...)`, for the end of a refusal: the annotations that restrict the GPUs; else empty. */
export function selectionInWords(selection: GpuSelection): string {
  const said = restrictionsOf(selection).map(([key, entries]) => {
    const named = entries.slice(0, MOST_IN_WORDS).join(', ');
    return `${key}: ${named}${entries.length > MOST_IN_WORDS ? ` and ${entries.length - MOST_IN_WORDS} more` : ''}`;
  });
  return said.length === 0 ? '' : ` (${said.length === 1 ? 'annotation' : 'annotations'} ${said.join('; ')})`;
}

function countsInWords({ gpus, gpusOf }: GpuSelection): readonly string[] {
  if (gpusOf !== undefined) return Object.entries(gpusOf).map(([name, count]) => `${name}=${count}`);
  return gpus > 1 ? [String(gpus)] : [];
}

function restrictionsOf(selection: GpuSelection): readonly (readonly [string, readonly string[]])[] {
  if (selection === ANY_GPUS) return [];
  const all: readonly (readonly [string, readonly string[]])[] = [
    [MODELS_KEY, selection.models],
    [EXCLUDED_MODELS_KEY, selection.excludedModels],
    [UUIDS_KEY, selection.uuids],
    [EXCLUDED_UUIDS_KEY, selection.excludedUuids],
    [EQUAL_GPUS_KEY, selection.equalGpus ? ['required'] : []],
    [SAME_NUMA_KEY, selection.sameNuma ? ['required'] : []],
    [GPUS_KEY, countsInWords(selection)],
    [COMPUTE_KEY, selection.compute === 'sm' ? ['sm'] : []],
  ];
  return all.filter(([, entries]) => entries.length > 0);
}
