import { setImmediate as nextTurn } from 'node:timers/promises';
import { devicePluginProto } from '../../rpc/proto.js';
import type { DeviceSource } from './devices.js';
import { callsOf } from './plugin-calls.js';

/** A pod is admitted later than this after the registration, and the agent has other work before. */
export const REHEARSAL_DELAY_MS = 100;

/** V8 compiles code in steps, by how often it has run; more rounds gain little. */
export const REHEARSAL_ROUNDS = 4;

/**
 * Takes the way of a GetPreferredAllocation for one core: decodes a request with all devices, lets `devices` decide,
 * and encodes the answer. V8 compiles code, and tables of the machine are made, when they are first used: the first pod
 * of an agent need not wait for that. `preferred` must change nothing. Calls of the kubelet go between the rounds.
 */
export async function rehearse(devices: DeviceSource): Promise<void> {
  const { requestSerialize, requestDeserialize, responseSerialize } =
    devicePluginProto().v1beta1.DevicePlugin.service.GetPreferredAllocation;
  const ids = devices.devices('core').map(({ id }) => id);
  const bytes = requestSerialize({
    container_requests: [{ available_deviceIDs: ids, must_include_deviceIDs: [], allocation_size: 1 }],
  });
  for (let round = 0; round < REHEARSAL_ROUNDS; round += 1) {
    await nextTurn();
    responseSerialize(await callsOf('core', devices).preferredAllocation(requestDeserialize(bytes)));
  }
}
