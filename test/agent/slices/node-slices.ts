import { join } from 'node:path';
import type { NewDeviceLimits } from '../../../src/abi/limits-file.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { LimitPolicy } from '../../../src/agent/slices/limits/limit-policy.js';
import { OperatorLimits } from '../../../src/agent/slices/limits/operator-limits.js';
import type { ContainerKnowledge } from '../../../src/agent/runtimes/index.js';
import type { PodLimitAnnotations } from '../../../src/agent/slices/ports.js';
import { SliceDirectories } from '../../../src/agent/slices/slice-directory.js';
import type { SliceSpec } from '../../../src/agent/slices/slice.js';
import { Slices, type SlicesOptions } from '../../../src/agent/slices/slices.js';
import { scratchDirectory } from '../../scratch.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

export const MIB = 1024 * 1024;

/** No container is known, as outside of Kubernetes. */
export const IGNORANT: ContainerKnowledge = {
  placeOf: async () => null,
  pidsOf: async () => [],
  sliceOf: () => null,
  nameOf: async () => null,
};

/** No pod is known. */
export const NO_LIMIT_ANNOTATIONS: PodLimitAnnotations = {
  annotations: () => null,
  onAnnotations: () => () => undefined,
};

export function gpuLimits(index: number, limits: Partial<NewDeviceLimits> = {}): NewDeviceLimits {
  return {
    uuid: `GPU-0000000${index}-1111-2222-3333-444444444444`,
    pciBusId: `00000000:0${index}:00.0`,
    memoryBytes: 1024 * MIB,
    share: 30,
    softLimit: null,
    ...limits,
  };
}

export const ALLOCATION = '00112233445566aa';

export function sliceSpec(spec: Partial<SliceSpec> = {}): SliceSpec {
  return {
    allocation: ALLOCATION,
    owner: { podUid: '11111111-2222-3333-4444-555555555555', namespace: 'default', pod: 'trainer', container: 'main' },
    devices: [gpuLimits(0)],
    ...spec,
  };
}

export interface TestSlices {
  readonly base: string;
  readonly slices: Slices;
  readonly policy: LimitPolicy;
  readonly operator: OperatorLimits;
  readonly socketPath: (allocation?: string) => string;
  /** The next run of the agent, after this one was closed or just left. */
  again(options?: TestSlicesOptions): Promise<TestSlices>;
}

export interface TestSlicesOptions extends Partial<SlicesOptions> {
  readonly base?: string;
  readonly limitAnnotations?: PodLimitAnnotations;
}

/** A vGPU manager without the rest of the agent. */
export async function openSlices(t: Teardown, options: TestSlicesOptions = {}): Promise<TestSlices> {
  const base = options.base ?? join(await scratchDirectory(t), 'vm');
  const operator = new OperatorLimits(new SliceDirectories(base), silentLog());
  const policy = new LimitPolicy(options.limitAnnotations ?? NO_LIMIT_ANNOTATIONS, operator);
  const slices = new Slices({
    directories: new SliceDirectories(base),
    knowledge: IGNORANT,
    driverVersion: () => '570.86.10',
    policy,
    clock: systemClock,
    log: silentLog(),
    ...options,
  });
  await slices.open();
  t.teardown(() => slices.close());
  return {
    base,
    slices,
    policy,
    operator,
    socketPath: (allocation = ALLOCATION) => join(base, allocation, 'vcuda.sock'),
    again: (changes = {}) => openSlices(t, { ...options, ...changes, base }),
  };
}
