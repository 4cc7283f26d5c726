import { isHigher, parsePriority, PRIORITIES, type Priority } from '../priority.js';
import { CONFIG_API_VERSION, CONFIG_KIND, DRIVER_NAME, mainRequest } from './names.js';
import type { AllocationConfig } from './resource-claim.js';

/** The settings for one request from the parameters of class and claim; null where none is set. */
export interface SliceSettings {
  /** Cores of the GPU that the slice may use while other containers leave the GPU idle. */
  readonly softLimit: number | null;
  /** Absent: the pod's annotation says it, else normal. */
  readonly priority?: Priority;
}

const NO_SETTINGS: SliceSettings = { softLimit: null };

export type ReadSettings =
  { readonly ok: true; readonly settings: SliceSettings } | { readonly ok: false; readonly reason: string };

/** Parameters of one object of kind SliceConfig. */
export interface SliceConfig {
  readonly softLimit?: number;
  /** In a class only: the highest `softLimit` that claims may set. */
  readonly maxSoftLimit?: number;
  readonly priority?: Priority;
  /** In a class only: the highest `priority` that claims and pods may set. */
  readonly maxPriority?: Priority;
}

interface Field {
  readonly of: 'claim' | 'class';
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

const hundredths = {
  expected: 'a whole number from 1 to 100',
  accepts: (value: unknown) => typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 100,
};
const priority = {
  expected: `one of ${PRIORITIES.join(', ')}`,
  accepts: (value: unknown) => typeof value === 'string' && parsePriority(value) !== null,
};

const FIELDS: Readonly<Record<string, Field>> = {
  softLimit: { of: 'claim', ...hundredths },
  maxSoftLimit: { of: 'class', ...hundredths },
  priority: { of: 'claim', ...priority },
  maxPriority: { of: 'class', ...priority },
};

export type ReadConfig =
  { readonly ok: true; readonly config: SliceConfig } | { readonly ok: false; readonly reason: string };

/**
 * Reads the parameters of one object strictly: users write them, so an unknown field, a value out of range, or a field
 * that only a class may set is refused with the expected value.
 */
export function readSliceConfig(parameters: unknown, source: AllocationConfig['source']): ReadConfig {
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters))
    return wrong(`expected an object of kind ${CONFIG_KIND}`);
  const { apiVersion, kind, ...fields } = parameters as Readonly<Record<string, unknown>>;
  if (apiVersion !== CONFIG_API_VERSION)
    return wrong(`apiVersion: expected ${CONFIG_API_VERSION}, found ${JSON.stringify(apiVersion)}`);
  if (kind !== CONFIG_KIND) return wrong(`kind: expected ${CONFIG_KIND}, found ${JSON.stringify(kind)}`);
  for (const [name, value] of Object.entries(fields)) {
    const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (field === undefined) return wrong(`${name}: no such field; there are ${Object.keys(FIELDS).join(', ')}`);
    if (field.of === 'class' && source !== 'FromClass') return wrong(`${name} may be set by a DeviceClass only`);
    if (!field.accepts(value)) return wrong(`${name}: ${JSON.stringify(value)} is not ${field.expected}`);
  }
  return { ok: true, config: fields };
}

/**
 * The settings of one request of a claim: the class's parameters, overridden field by field by the claim's. Parameters
 * of other drivers are ignored.
 */
export function settingsOf(configs: readonly AllocationConfig[], request: string): ReadSettings {
  let settings = NO_SETTINGS;
  let maxSoftLimit: number | null = null;
  let maxPriority: Priority | null = null;
  const ordered = [...configs.entries()].sort(([, a], [, b]) => rank(a) - rank(b));
  for (const [at, { driver, source, requests, parameters }] of ordered) {
    if (driver !== DRIVER_NAME) continue;
    if (requests.length > 0 && !requests.some((name) => name === request || name === mainRequest(request))) continue;
    const read = readSliceConfig(parameters, source);
    if (!read.ok) return wrong(`config ${at + 1}: ${read.reason}`);
    maxSoftLimit = read.config.maxSoftLimit ?? maxSoftLimit;
    maxPriority = read.config.maxPriority ?? maxPriority;
    if (read.config.softLimit !== undefined) {
      if (source === 'FromClaim' && maxSoftLimit !== null && read.config.softLimit > maxSoftLimit)
        return wrong(
          `config ${at + 1}: softLimit: ${read.config.softLimit} is more than the class allows, ${maxSoftLimit}`,
        );
      settings = { ...settings, softLimit: read.config.softLimit };
    }
    if (read.config.priority !== undefined) {
      if (source === 'FromClaim' && maxPriority !== null && isHigher(read.config.priority, maxPriority))
        return wrong(
          `config ${at + 1}: priority: ${read.config.priority} is higher than the class allows, ${maxPriority}`,
        );
      settings = { ...settings, priority: read.config.priority };
    }
  }
  // If the class limits the priority and no priority was chosen, the limit also applies to the annotations of the pods.
  if (settings.priority === undefined && maxPriority !== null && maxPriority !== 'high')
    settings = { ...settings, priority: maxPriority };
  return { ok: true, settings };
}

const rank = ({ source }: AllocationConfig): number => (source === 'FromClass' ? 0 : 1);

function wrong(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}
