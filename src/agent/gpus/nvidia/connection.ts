import { busId } from './identity.js';
import { NVML } from './nvml-code.js';
import { filling, uint, type Handle, type Question } from './question.js';

/** Questions that say how cards are connected. */

/** `nvmlGpuTopologyLevel_t` of a pair. */
export const commonAncestor = (a: Handle, b: Handle): Question<number> =>
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

/** More links than any card has; a card answers INVALID_ARGUMENT from its first missing one on. */
export const MAX_LINKS = 64;

/** Whether a link is up; `absent` where the card has no link of this number. Null: no NVLink at all. */
export const linkState = (card: Handle, link: number): Question<'up' | 'down' | 'absent'> =>
  filling<'up' | 'down' | 'absent'>({
    feature: null,
    names: ['nvmlDeviceGetNvLinkState'],
    inputs: [
      ['handle', card],
      ['uint', link],
    ],
    sizes: [4],
    read: (name, out) => (uint(name, out) === 1 ? 'up' : 'down'),
    instead: (code) => (code === NVML.INVALID_ARGUMENT ? 'absent' : null),
  });

/** `nvmlIntNvLinkDeviceType_t`: a GPU at the other end, an NVSwitch, or something else. */
export const REMOTE_GPU = 0;
export const REMOTE_SWITCH = 2;

export const linkRemoteType = (card: Handle, link: number): Question<number> =>
  filling({
    feature: null,
    names: ['nvmlDeviceGetNvLinkRemoteDeviceType'],
    inputs: [
      ['handle', card],
      ['uint', link],
    ],
    sizes: [4],
    read: uint,
  });

export const linkRemoteBusId = (card: Handle, link: number): Question<string> =>
  busId(
    null,
    ['nvmlDeviceGetNvLinkRemotePciInfo_v2', 'nvmlDeviceGetNvLinkRemotePciInfo'],
    [
      ['handle', card],
      ['uint', link],
    ],
  );
