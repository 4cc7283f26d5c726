/**
 * The numbers of native/include/vgpu_abi.h: byte offsets of fields, sizes of structures, constants. Written by `npm run abi`; do not edit.
 */
export const CONTAINER_DIRECTORY = '/etc/vcuda';
export const LIMITS_FILE = 'vgpu.limits';
export const USAGE_FILE = 'usage/vgpu.usage';
export const SOCKET_FILE = 'vcuda.sock';
export const ACTIVITY_FILE = 'usage/vgpu.activity';
export const HIGH_DIRECTORY = 'high';
export const ABI_VERSION = 1;
export const MAX_DEVICES = 16;
export const MAX_PROCESSES = 512;
export const MAX_HIGH = 32;
export const LIMITS_MAGIC = 0x544d494c55504756n;
export const USAGE_MAGIC = 0x4445535555504756n;
export const GREETING_MAGIC = 0x4f4c454855504756n;
export const SHARE_WHOLE = 100;
export const PPM_WHOLE = 1000000;
export const FLOOR_WHOLE = 10000;
export const STEERING_STALE_NS = 2000000000;
export const CLAIM_MOST_NS = 1000000000;
export const SLOT_PID_SHIFT = 2;
export const SLOT_PID_BITS = 22;
export const SLOT_START_SHIFT = 24;
export const SLOT_START_BITS = 40;
export const DESCRIPTOR_LOCKS = 2199023255552;
export const DESCRIPTORS_OF_OBJECT = 65536;
export const SLOT_MARKS = 2199023255552;
export const LAUNCHED_UNKNOWN = 2147483648;
export const LAUNCHED_TICK_SHIFT = 20;
export const POLICY = { denyUnlisted: 1, unenforced: 2, memoryByDriver: 4, suspendable: 8 } as const;
export const LOG_LEVEL = { none: 0, error: 1, warning: 2, info: 3, debug: 4 } as const;
export const LIVE_FLAGS = { alone: 1 } as const;
export const PRIORITY = { normal: 0, high: 1, low: 2 } as const;
export const SUSPENDED = { not: 0, begins: 1, away: 2, waits: 3 } as const;
export const DENIED_API = {
  alloc: 0,
  pitch: 1,
  managed: 2,
  async: 3,
  pool: 4,
  vmm: 5,
  array: 6,
  mipmap: 7,
  graph: 8,
  external: 9,
  context: 10,
  kinds: 16,
} as const;
export const SELF_TEST = { driverFound: 1, lookupKnown: 2, devicesMatched: 4, sessionOpen: 8, eventsWork: 16 } as const;
export const OBSTACLE = { managed: 1, shared: 2, external: 4 } as const;
export const SLOT_STATE = { free: 0, live: 1, reclaiming: 2 } as const;
export const DESCRIPTOR_FILE = { none: 0, writing: 1, known: 2 } as const;
export const LIMITS_HEADER = {
  magic: 0,
  version: 8,
  size: 12,
  deviceCount: 16,
  policy: 20,
  logLevel: 24,
  sequence: 28,
  allocation: 32,
  suspended: 96,
  structSize: 128,
} as const;
export const DEVICE_IDENTITY = { uuid: 0, pciBusId: 64, highBelieved: 96, structSize: 128 } as const;
export const DEVICE_LIVE = {
  memoryLimitBytes: 0,
  driverOverheadBytes: 8,
  steeredAtNs: 16,
  share: 24,
  softLimit: 28,
  grantPpm: 32,
  correctionPpm: 36,
  flags: 40,
  generation: 44,
  othersPpm: 48,
  priority: 52,
  highCount: 53,
  lowFloor: 54,
  hostBackedLimitBytes: 56,
  structSize: 64,
} as const;
export const LIMITS_LAYOUT = { header: 0, devices: 128, live: 2176, structSize: 4224 } as const;
export const TURN = {
  gpu: 0,
  slice: 8,
  busyUntilNs: 16,
  waitsUntilNs: 24,
  holdsUntilNs: 32,
  levelNs: 40,
  usedNs: 48,
  ended: 56,
  pauses: 60,
  structSize: 64,
} as const;
export const ACTIVITY = { claimedUntilNs: 0, turns: 4096, structSize: 5120 } as const;
export const USAGE_HEADER = {
  magic: 0,
  version: 8,
  size: 12,
  deviceCount: 16,
  slotCount: 20,
  slotHigh: 24,
  objectHigh: 28,
  descriptorDevice: 32,
  descriptorInode: 40,
  descriptorKnown: 48,
  descriptorPath: 52,
  workedAtNs: 192,
  asked: 200,
  structSize: 256,
} as const;
export const SHARED_OBJECT = { state: 0, key: 8, bytes: 16, device: 24, descriptors: 28, structSize: 32 } as const;
export const DEVICE_USAGE = {
  levelAtNs: 0,
  softChangedAtNs: 8,
  softGrantPpm: 16,
  levelShare: 20,
  aloneUntilNs: 24,
  contextBytes: 32,
  contextKnown: 40,
  contextMeasurer: 44,
  floorAtNs: 48,
  preemptedNs: 56,
  launches: 64,
  chargedNs: 72,
  throttledNs: 80,
  waits: 88,
  samples: 96,
  sampledNs: 104,
  unknownLaunches: 112,
  lentAtNs: 120,
  denied: 128,
  deniedBytes: 256,
  peakBytes: 264,
  reclaimedBytes: 272,
  structSize: 512,
} as const;
export const PROCESS_SLOT = {
  owner: 0,
  pidNamespace: 8,
  startStack: 16,
  registeredAtNs: 24,
  selfTest: 32,
  unhooked: 36,
  name: 40,
  object: 56,
  hostBackedBytes: 88,
  hostBackedTentativeBytes: 96,
  markedOwner: 104,
  obstaclesOwner: 112,
  obstacles: 120,
  linksUnread: 124,
  structSize: 128,
} as const;
export const LEDGER_ENTRY = {
  heldBytes: 0,
  tentativeBytes: 8,
  launched: 16,
  objectHolders: 24,
  structSize: 32,
} as const;
export const USAGE_LAYOUT = { header: 0, devices: 256, slots: 8448, ledger: 73984, structSize: 336128 } as const;
export const GREETING = { magic: 0, version: 8, size: 12, pid: 16, slot: 20, startTicks: 24, structSize: 32 } as const;
/** Sizes of the fields that hold text. */
export const TEXT_BYTES = {
  limitsHeaderAllocation: 64,
  deviceIdentityUuid: 64,
  deviceIdentityPciBusId: 32,
  usageHeaderDescriptorPath: 140,
  processSlotName: 16,
} as const;
