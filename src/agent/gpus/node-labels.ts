import {
  COMPUTE_LABEL,
  CUDA_VERSION_LABEL,
  DRIVER_VERSION_LABEL,
  GPU_MODEL_LABEL,
  GPU_PRODUCT_LABEL,
} from '../../gpu/annotations.js';

/** The facts that the labels contain. */
export interface NodeFacts {
  /** Product names of the GPUs, in the driver's order. */
  readonly models: readonly string[];
  readonly driverVersion: string | null;
  /** 1000 x major + 10 x minor. */
  readonly cudaVersion: number | null;
  /** How many of the GPUs share their multiprocessors; absent: none. */
  readonly smGpus?: number;
}

/**
 * The labels of a node; unknown ones are left out. As in the original they describe the first GPU: nodes with unequal
 * GPUs are rare, and a label has one value.
 */
export function nodeLabels(facts: NodeFacts): ReadonlyMap<string, string> {
  const first = facts.models[0] ?? '';
  const { smGpus = 0 } = facts;
  const labels: readonly (readonly [string, string])[] = [
    [GPU_MODEL_LABEL, labelValue(modelName(first))],
    [GPU_PRODUCT_LABEL, labelValue(first)],
    [DRIVER_VERSION_LABEL, labelValue(facts.driverVersion ?? '')],
    [
      CUDA_VERSION_LABEL,
      facts.cudaVersion === null
        ? ''
        : `${Math.floor(facts.cudaVersion / 1000)}.${Math.floor((facts.cudaVersion % 1000) / 10)}`,
    ],
    [COMPUTE_LABEL, smGpus === 0 ? '' : smGpus === facts.models.length ? 'sm' : 'time-and-sm'],
  ];
  return new Map(labels.filter(([, value]) => value !== ''));
}

/** Words before the model: the maker and the product line. */
const BRANDS = new Set(['NVIDIA', 'TESLA', 'QUADRO', 'GEFORCE', 'GRID']);
/** Words after the number that belong to the model. */
const VARIANTS = new Set(['TI', 'SUPER', 'ADA', 'D']);

/**
 * The model in a product name, without brand, form factor and memory: `H200` for "NVIDIA H200", `A100` for "NVIDIA
 * A100-SXM4-40GB", `T4` for "Tesla T4", `M40` for "Tesla M40 24GB" (as the original has it), `RTX-4090` for "NVIDIA
 * GeForce RTX 4090".
 */
export function modelName(product: string): string {
  const words = product.split(/\s+/u).filter((word) => word !== '');
  const start = words.findIndex((word) => !BRANDS.has(word.toUpperCase()));
  const own = start < 0 ? words : words.slice(start);
  const numbered = own.findIndex((word) => /\d/u.test(word));
  if (numbered < 0) return own.join('-');
  const series = own.slice(0, numbered);
  const number = (own[numbered] as string).split('-', 1)[0] as string;
  const variants = own.slice(numbered + 1);
  const end = variants.findIndex((word) => !VARIANTS.has(word.toUpperCase()));
  return [...series, number, ...variants.slice(0, end < 0 ? variants.length : end)].join('-');
}

const MAX_LABEL = 63;

/** Converts text to a valid label value: letters, digits, `-`, `_` and `.`, with a letter or digit at both ends. */
function labelValue(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9_.]+/gu, '-')
    .slice(0, MAX_LABEL)
    .replaceAll(/^[-_.]+|[-_.]+$/gu, '');
}
