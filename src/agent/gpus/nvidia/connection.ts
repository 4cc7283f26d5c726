import { busId } from './identity.js';
import { NVML } from './nvml-code.js';
import { filling, uint, type Handle, type NvmlCall } from './nvml-call.js';

/** NVML calls that tell how GPUs are connected. */

/** `nvmlGpuTopologyLevel_t` of a pair. */
export const commonAncestor = (a: Handle, b: Handle): NvmlCall<number> =>
  filling({
    feature: 'PCIe topology (its pairs count as SYS)',
    names: ['nvmlDeviceGetTopologyCommonAncestor'],
    inputs: [
      ['handle', a],
      ['handle', b],
    ],
    sizes: [4],
    read: uint,
  });

/** No GPU has more links; a GPU answers INVALID_ARGUMENT from its first missing link on. */
export const MAX_LINKS = 64;

/** State of a link; `absent` if the GPU has no link of this number. Null: the GPU has no NVLink at all. */
export const linkState = (gpu: Handle, link: number): NvmlCall<'up' | 'down' | 'absent'> =>
  filling<'up' | 'down' | 'absent'>({
    feature: null,
    names: ['nvmlDeviceGetNvLinkState'],
    inputs: [
      ['handle', gpu],
      ['uint', link],
    ],
    sizes: [4],
    read: (name, out) => (uint(name, out) === 1 ? 'up' : 'down'),
    instead: (code) => (code === NVML.INVALID_ARGUMENT ? 'absent' : null),
  });

/** `nvmlIntNvLinkDeviceType_t`: a GPU at the other end, an NVSwitch, or something else. */
export const REMOTE_GPU = 0;
export const REMOTE_SWITCH = 2;

export const linkRemoteType = (gpu: Handle, link: number): NvmlCall<number> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetNvLinkRemoteDeviceType'],
    inputs: [
      ['handle', gpu],
      ['uint', link],
    ],
    sizes: [4],
    read: uint,
  });

export const linkRemoteBusId = (gpu: Handle, link: number): NvmlCall<string> =>
  busId(
    null,
    ['nvmlDeviceGetNvLinkRemotePciInfo_v2', 'nvmlDeviceGetNvLinkRemotePciInfo'],
    [
      ['handle', gpu],
      ['uint', link],
    ],
  );
