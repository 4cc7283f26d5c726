/**
 * The audit of one container: compares driver, sockets and usage file. Pure: takes what is observed at one moment,
 * returns what is wrong; `findings.ts` decides which findings last long enough to be reported.
 */
import type { ProcessSlot, SelfTest } from '../../abi/usage-file.js';

export const FINDING_CODES = [
  /** GPU processes, and none of the container's has the control library. */
  'no-library',
  /** It was made without what keeps the control library in it, or with what unhooks it. */
  'not-injected',
  /** Some have, this one has not. */
  'unregistered',
  /** It uses a GPU that it was not given. */
  'wrong-gpu',
  /** The library is there and does not keep the limits. */
  'not-enforcing',
  /** The driver counts more memory than the limit. */
  'over-limit',
  /** The usage file is not as only the library would leave it. */
  'tampered',
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** One thing that is wrong. */
export interface Finding {
  readonly code: FindingCode;
  /** What tells it from others of its kind in one container. */
  readonly subject: string;
  readonly message: string;
  /** The limits may not be enforced: a reason to evict, if the policy says so. */
  readonly serious: boolean;
  /** One look proves it: it is said at once. */
  readonly certain?: true;
}

/** A process of the container that the driver lists on a GPU. */
export interface AuditedProcess {
  /** Of the host. */
  readonly pid: number;
  /** Chosen by itself. */
  readonly name: string;
  /** It came by the socket. */
  readonly greeted: boolean;
  /** The usage file has a line with its pid and start time: it came by before this agent did. */
  readonly claimed: boolean;
  /** It used the GPU in the last second, as far as the driver says. */
  readonly active: boolean;
  /** It has the control library mapped; null where that is not known. Absent: null. */
  readonly library?: boolean | null;
}

/** A process that greeted, and the line of the usage file that it named; null when that line is not its own. */
export interface AuditedSession {
  /** Null where the agent cannot see the container's processes. */
  readonly pid: number | null;
  readonly slot: ProcessSlot | null;
  /** The driver lists it on a GPU: its self test is through. A child that only carries the library along has none. */
  readonly onGpu: boolean;
}

/** One of its GPUs. */
export interface AuditedDevice {
  readonly gpuUuid: string;
  readonly memoryLimitBytes: number | null;
  /** By the driver; null where it does not say. */
  readonly usedMemoryBytes: number | null;
  readonly share: number;
  readonly launches: number;
  /** Launches that were timed. */
  readonly samples: number;
  /** A counter is lower than it was: only its writer can have done that. */
  readonly wentBack: boolean;
  /**
   * Memory in bytes that the driver counts and the container's own account does not; null where one of the two is not
   * known.
   */
  readonly uncountedMemoryBytes: number | null;
  /**
   * GPU time in ppm of the GPU that the driver reports and launches were not charged; null where the driver does not
   * say.
   */
  readonly unchargedTimePpm: number | null;
  /** The part of it that no correction of the charges can explain. Absent: null. */
  readonly uncorrectableTimePpm?: number | null;
}

export interface AuditView {
  /** GPU processes on all its GPUs, each once. */
  readonly processes: readonly AuditedProcess[];
  readonly sessions: readonly AuditedSession[];
  readonly devices: readonly AuditedDevice[];
  /** Its processes on GPUs of others. */
  readonly trespasses: readonly { readonly gpuUuid: string; readonly process: Pick<AuditedProcess, 'pid' | 'name'> }[];
  /** What is wrong with the usage file as a file; null when nothing is. */
  readonly fileProblem: string | null;
  /** What unhooks the control library in it, as the runtime has it; empty where all is right. Absent: not known. */
  readonly uninjected?: readonly string[];
  /** What was cut off it lately; null when nothing was. */
  readonly fileGrown: string | null;
}

/** Driver and ledger round differently and are read at different moments. */
const MEMORY_SLACK_BYTES = 64 * 2 ** 20;
/**
 * Modules that a program loads when its memory is full come on top of it; more than this a container is something else.
 */
const MODULE_BYTES = 256 * 2 ** 20;
/**
 * What the modules of all processes may take without a charge of their own; more than this is use past the control
 * library.
 */
const UNCOUNTED_BYTES = 2 ** 30;
/** Charges are estimates, which are corrected within these bounds; more time than this goes past them. */
const UNCHARGED_TIME_PPM = 100_000;
/** So many launches and none timed: timing does not work. */
const LAUNCHES_TO_TIME = 1_000;

/** What is wrong with a container at this moment. */
export function audit(view: AuditView): Finding[] {
  const trespasses = view.trespasses.map(({ gpuUuid, process }): Finding => ({
    code: 'wrong-gpu',
    subject: `${process.pid} ${gpuUuid}`,
    message: `${list([process])} uses ${gpuUuid}, which the container was not given`,
    serious: true,
  }));
  const limited = view.devices.some(({ memoryLimitBytes, share }) => memoryLimitBytes !== null || share < 100);
  if (!limited) return trespasses;
  return [
    ...trespasses,
    ...auditInjection(view),
    ...auditProcesses(view),
    ...auditSessions(view),
    ...auditDevices(view),
    ...auditFile(view),
  ];
}

/** No reason to evict by itself: whether a process really goes past the control library is seen when it uses a GPU. */
function auditInjection({ uninjected = [] }: AuditView): Finding[] {
  if (uninjected.length === 0) return [];
  const message = `the container was not made with what its slice needs: ${uninjected.join('; ')}`;
  return [{ code: 'not-injected', subject: '', message, serious: false, certain: true }];
}

function auditProcesses({ processes, sessions }: AuditView): Finding[] {
  // One that this agent has not met yet but that left its line before is met at its next launch: until then it does
  // nothing. A greeting and a slot of the usage file are easily written: the mapped library decides, where it can be
  // seen.
  const foreignProcesses = processes.filter(
    ({ greeted, claimed, active, library }) => library === false || (!greeted && (!claimed || active)),
  );
  if (foreignProcesses.length > 0 && sessions.length === 0 && !processes.some(({ claimed }) => claimed)) {
    const message =
      `${list(foreignProcesses)} use the GPU, and no process of the container has loaded the control library: ` +
      'its image sets LD_LIBRARY_PATH, or another runtime put the real driver in its place';
    return [{ code: 'no-library', subject: '', message, serious: true }];
  }
  return foreignProcesses.map((foreignProcess) => ({
    code: 'unregistered',
    subject: String(foreignProcess.pid),
    message: `${list([foreignProcess])} uses the GPU without the control library${foreignProcess.greeted ? ', but greeted as if it had it' : ''}`,
    serious: true,
  }));
}

function list(processes: readonly Pick<AuditedProcess, 'pid' | 'name'>[]): string {
  const shown = processes.slice(0, 5).map(({ pid, name }) => `${name} (${pid})`);
  return processes.length > shown.length
    ? `${shown.join(', ')} and ${processes.length - shown.length} more`
    : shown.join(', ');
}

/** What each part of the self test means when it failed; null: nothing by itself. */
const SELF_TEST_FAILURES: Readonly<Record<keyof SelfTest, string | null>> = {
  driverFound: "did not find the driver's functions",
  lookupKnown: 'hands out functions of the driver that it does not recognise: this driver is newer than the library',
  devicesMatched: 'sees GPUs that its limits do not list',
  sessionOpen: null,
  eventsWork: null,
};

function auditSessions(view: AuditView): Finding[] {
  const evidence = view.devices.flatMap((device) => evidenceOn(device));
  return view.sessions.flatMap((session) => auditSession(session, evidence));
}

/**
 * What the driver counts on a GPU and the slice does not: use past the control library, and not only the possibility of
 * it.
 */
function evidenceOn(device: AuditedDevice): string[] {
  const { gpuUuid, memoryLimitBytes, share, uncountedMemoryBytes, unchargedTimePpm } = device;
  const evidence: string[] = [];
  if (memoryLimitBytes !== null && uncountedMemoryBytes !== null && uncountedMemoryBytes > UNCOUNTED_BYTES)
    evidence.push(`${mib(uncountedMemoryBytes)} on ${gpuUuid} are not counted`);
  if (share < 100 && unchargedTimePpm !== null && unchargedTimePpm > UNCHARGED_TIME_PPM)
    evidence.push(`${Math.round(unchargedTimePpm / 10_000)} % of the time of ${gpuUuid} are not charged`);
  return evidence;
}

function auditSession({ pid, slot, onGpu }: AuditedSession, evidence: readonly string[]): Finding[] {
  const subject = String(pid ?? '?');
  if (slot === null) {
    return [
      {
        code: 'tampered',
        subject,
        message: `process ${subject} greeted as one that the usage file does not have`,
        serious: true,
      },
    ];
  }
  const failures = (Object.keys(SELF_TEST_FAILURES) as (keyof SelfTest)[]).flatMap((test) =>
    slot.selfTest[test] ? [] : (SELF_TEST_FAILURES[test] ?? []),
  );
  // A function that was handed out may never be called, or do nothing that is limited.
  if (slot.unhooked > 0) failures.push(`handed out ${slot.unhooked} functions of the driver that it does not limit`);
  if (failures.length === 0 || !onGpu) return [];
  return [
    {
      code: 'not-enforcing',
      subject,
      message: [`the control library in ${slot.name} (${subject}) ${failures.join(', ')}`, ...evidence].join('; '),
      serious: !slot.selfTest.driverFound || evidence.length > 0,
    },
  ];
}

function auditDevices({ devices }: AuditView): Finding[] {
  return devices.flatMap((device): Finding[] => {
    const findings: Finding[] = [];
    const { gpuUuid, memoryLimitBytes, usedMemoryBytes } = device;
    if (
      memoryLimitBytes !== null &&
      usedMemoryBytes !== null &&
      usedMemoryBytes > memoryLimitBytes + MEMORY_SLACK_BYTES
    ) {
      const serious = usedMemoryBytes > memoryLimitBytes + MEMORY_SLACK_BYTES + MODULE_BYTES;
      findings.push({
        code: 'over-limit',
        subject: gpuUuid,
        message: `${mib(usedMemoryBytes)} in use on ${gpuUuid}, the limit is ${mib(memoryLimitBytes)}`,
        serious,
      });
    }
    if (device.share < 100 && device.launches >= LAUNCHES_TO_TIME && device.samples === 0) {
      findings.push({
        code: 'not-enforcing',
        subject: gpuUuid,
        message: `launches on ${gpuUuid} cannot be timed: its share is kept by guess`,
        serious: false,
      });
    }
    const uncorrectable = device.uncorrectableTimePpm ?? null;
    if (device.share < 100 && uncorrectable !== null && uncorrectable > UNCHARGED_TIME_PPM) {
      findings.push({
        code: 'not-enforcing',
        subject: `${gpuUuid} time`,
        message: `${Math.round((device.unchargedTimePpm ?? uncorrectable) / 10_000)} % of the time of ${gpuUuid} are used and not charged`,
        serious: true,
      });
    }
    if (device.wentBack)
      findings.push({
        code: 'tampered',
        subject: gpuUuid,
        message: `counters of ${gpuUuid} went back`,
        serious: false,
      });
    return findings;
  });
}

function auditFile({ fileProblem, fileGrown }: AuditView): Finding[] {
  const changed = 'the usage file was changed from within the container';
  const grown: Finding[] =
    fileGrown === null
      ? []
      : [{ code: 'tampered', subject: 'size', message: `${changed}: ${fileGrown}`, serious: true, certain: true }];
  return fileProblem === null
    ? grown
    : [...grown, { code: 'tampered', subject: 'file', message: `${changed}: ${fileProblem}`, serious: true }];
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}
