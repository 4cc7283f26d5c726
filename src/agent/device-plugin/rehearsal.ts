import { devicePluginProto } from '../../rpc/proto.js';
import type { DeviceSource } from './devices.js';
import { callsOf } from './plugin-calls.js';

/** A pod is admitted later than this after the registration, and the agent has other work before. */
export const REHEARSAL_DELAY_MS = 100;

/**
 * Takes the way of a GetPreferredAllocation for one core: decodes a request with all devices, lets `devices` decide,
 * and encodes the answer. V8 compiles code, and tables of the machine are made, when they are first used: the first pod
 * of an agent need not wait for that. `preferred` must change nothing.
 */
export async function rehearse(devices: DeviceSource): Promise<void> {
  const { requestSerialize, requestDeserialize, responseSerialize } =
    devicePluginProto().v1beta1.DevicePlugin.service.GetPreferredAllocation;
  const ids = devices.devices('core').map(({ id }) => id);
  const bytes = requestSerialize({
    container_requests: [{ available_deviceIDs: ids, must_include_deviceIDs: [], allocation_size: 1 }],
  });
  responseSerialize(await callsOf('core', devices).preferredAllocation(requestDeserialize(bytes)));
}
