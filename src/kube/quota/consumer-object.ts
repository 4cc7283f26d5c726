import type { ConsumerSpec } from '../../quota/index.js';
import type { Condition } from '../condition.js';
import { versionOf, type KubeObject } from '../object.js';
import type { WrittenAmounts } from '../amounts.js';
import { readConsumerAmounts, writtenAmounts } from './consumer-amounts.js';

export interface ConsumerStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

/** The limits of a namespace as its Consumer object declares them. */
export interface ConsumerObject {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly version: number;
  readonly generation: number;
  readonly spec: ConsumerSpec;
  /** Whether its waiting pods take the room of its own pods of lower priority, also beyond its fair share. */
  readonly preemption: 'Never' | 'LowerPriority';
  /** `hard` and `reserved` as they are written. */
  readonly written: { readonly hard: WrittenAmounts; readonly reserved: WrittenAmounts };
  /** Errors of amounts that cannot be read; `spec` is without these amounts. */
  readonly problems: readonly string[];
  readonly status: ConsumerStatus;
}

/** Reads a Consumer; null for an object without name or uid. */
export function readConsumer(object: unknown): ConsumerObject | null {
  const { metadata, spec, status } = object as KubeObject;
  if (metadata?.name === undefined || metadata.uid === undefined) return null;
  const { name, uid, resourceVersion = '', generation = 0 } = metadata;
  const [hard, reserved] = [readConsumerAmounts(spec?.['hard'], 'down'), readConsumerAmounts(spec?.['reserved'], 'up')];
  const { weight, system, parent, preemption } = (spec ?? {}) as {
    readonly preemption?: unknown;
    readonly weight?: number;
    readonly system?: boolean;
    readonly parent?: string;
  };
  return {
    name,
    uid,
    resourceVersion,
    generation,
    version: versionOf(object as KubeObject),
    spec: {
      name,
      hard: hard.amounts,
      reserved: reserved.amounts,
      weight,
      ...(parent === undefined || parent === '' ? {} : { parent }),
      isSystem: system,
    },
    preemption: preemption === 'LowerPriority' ? 'LowerPriority' : 'Never',
    written: { hard: writtenAmounts(spec?.['hard']), reserved: writtenAmounts(spec?.['reserved']) },
    problems: [
      ...hard.problems.map((problem) => `hard: ${problem}`),
      ...reserved.problems.map((problem) => `reserved: ${problem}`),
    ],
    status: status ?? {},
  };
}
