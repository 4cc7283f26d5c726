/**
 * The audit of one container: compares driver, sockets and usage file. Pure: maps the observations of one moment to
 * findings; `findings.ts` decides which of them last long enough to be reported.
 */
import type { ProcessSlot, SelfTest } from '../../../abi/usage-file.js';
import type { ShareAccount } from '../steering/over-share.js';

export const FINDING_CODES = [
  /** The container has GPU processes, and none of them has the control library. */
  'no-library',
  /** The container was created without something that loads the control library, or with a setting that unhooks it. */
  'not-injected',
  /** Somebody else changed the container's memory limit in the driver. */
  'limit-changed',
  /** Some processes of the container have the control library, others do not. */
  'unregistered',
  /** A program is not in the MPS namespace of its container, and so has all multiprocessors of the GPU. */
  'outside-namespace',
  /** A process uses a GPU that was not allocated to its container. */
  'wrong-gpu',
  /** The control library is loaded but does not enforce the limits. */
  'not-enforcing',
  /** The driver counts more memory than the limit. */
  'over-limit',
  /** The container uses more of the GPU's time than its share or grant allows; unenforced: than was allocated to it. */
  'over-share',
  /** A process of the container cannot read when other slices have work. */
  'links-unread',
  /** The content of the usage file cannot come from the control library. */
  'tampered',
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** One result of the audit. */
export interface Finding {
  readonly code: FindingCode;
  /** Distinguishes findings of the same code in one container. */
  readonly subject: string;
  readonly message: string;
  /** Whether the limits may be unenforced, which is a reason to evict if the policy says so. */
  readonly serious: boolean;
  /** Whether one observation is enough to report it at once. */
  readonly certain?: true;
  /**
   * Whether nothing but a bypass explains the observation, so that a second one counts even if audits without it lie
   * between.
   */
  readonly proof?: true;
  /** Whether it occurred twice since the last audit. */
  readonly twice?: true;
}

/** A process of the container that the driver lists on a GPU. */
export interface AuditedProcess {
  /** Pid on the host. */
  readonly pid: number;
  /** Name that the process chose itself. */
  readonly name: string;
  /** Whether it sent a greeting over the socket. */
  readonly greeted: boolean;
  /** Whether the usage file has a slot with its pid and start time: it greeted an earlier run of the agent. */
  readonly claimed: boolean;
  /** Whether it used the GPU in the last second, as far as the driver reports. */
  readonly active: boolean;
  /** Whether it came, went and came again since the last audit. */
  readonly again?: boolean;
  /** Whether it has the control library mapped; null or absent: unknown. */
  readonly library?: boolean | null;
}

/** A process that sent a greeting, and the slot of the usage file that it named; null if that slot is another's. */
export interface AuditedSession {
  /** Null if the agent cannot see the container's processes. */
  readonly pid: number | null;
  readonly slot: ProcessSlot | null;
  /**
   * Whether the driver lists it on a GPU, so that its self test has ended. A child process that only inherits the
   * library has no self test.
   */
  readonly onGpu: boolean;
}

/** One GPU of the container. */
export interface AuditedDevice {
  readonly gpuUuid: string;
  readonly memoryLimitBytes: number | null;
  /** The driver's highest count since the last audit; null if the driver does not report it. */
  readonly usedMemoryBytes: number | null;
  readonly share: number;
  /** Percent of the GPU's time that the driver reports for its processes; null or absent: unknown. */
  readonly usedPercent?: number | null;
  readonly launches: number;
  /** Number of launches with a measured time. */
  readonly samples: number;
  /** Whether a counter fell, which only a writer other than the control library can cause. */
  readonly wentBack: boolean;
  /**
   * Memory in bytes that the driver counts and the container's usage file does not contain; null if one of the two is
   * unknown.
   */
  readonly uncountedMemoryBytes: number | null;
  /**
   * GPU time in ppm of the GPU that the driver reports and that no launch was charged; null if the driver reports none.
   */
  readonly unchargedTimePpm: number | null;
  /** The part of `unchargedTimePpm` that no correction of the charges can explain; null or absent: unknown. */
  readonly uncorrectableTimePpm?: number | null;
  /** Its use over the last seconds beside what it might use, as charged and corrected; null or absent: unknown. */
  readonly shareAccount?: ShareAccount | null;
  /**
   * The largest part of the GPU's time, in percent, that one sample since the last audit showed and that no launch
   * explains; null or absent: none.
   */
  readonly unchargedPercent?: number | null;
}

export interface AuditView {
  /** Its limits are not enforced: the audit compares only the slice's own use with them. Absent: they are. */
  readonly unenforced?: boolean;
  /** Processes on all its GPUs since the last audit, without duplicates. */
  readonly processes: readonly AuditedProcess[];
  readonly sessions: readonly AuditedSession[];
  readonly devices: readonly AuditedDevice[];
  /** Its processes on GPUs that were not allocated to it. */
  readonly usesOfOtherGpus: readonly {
    readonly gpuUuid: string;
    readonly process: Pick<AuditedProcess, 'pid' | 'name'>;
  }[];
  /** A problem of the usage file as a file; null without one. */
  readonly fileProblem: string | null;
  /**
   * Settings of the container, according to the runtime, that keep the control library out; empty if there are none.
   * Absent: unknown.
   */
  readonly uninjected?: readonly string[];
  /** In words, that somebody else changed a memory limit in the driver lately; null or absent if nobody did. */
  readonly limitChanged?: string | null;
  /** In words, programs that are not in the MPS namespace of their container; null or absent: none. */
  readonly outsideNamespace?: string | null;
  /** The part that was recently cut off the usage file because it had grown; null if it had not. */
  readonly fileGrown: string | null;
}

/** Driver and ledger round differently and are read at different times. */
const MEMORY_SLACK_BYTES = 64 * 2 ** 20;
/** Modules that a program loads when its memory is full exceed the limit by this much at most. */
const MODULE_BYTES = 256 * 2 ** 20;
/** Use above this many times the limit cannot come from rounding or modules. */
const GROSS_FACTOR = 1.25;
/** Modules of all processes may take this much without a charge; more is use past the control library. */
const UNCOUNTED_BYTES = 2 ** 30;
/**
 * Charges are estimates that are corrected within bounds; more uncharged time than this is use past the control
 * library.
 */
const UNCHARGED_TIME_PPM = 100_000;
const GROSS_UNCHARGED_TIME_PPM = 200_000;
/**
 * Reports of GPU time cover short windows, in whole percents: use up to this much above the allocation is no finding.
 */
const OVER_SHARE_PERCENT = 10;
/** The agent and the library read limits at different moments: use up to this much beyond a grant is no finding. */
const OVER_GRANT_PPM = 50_000;
const GROSS_OVER_GRANT_PPM = 100_000;
/** After this many launches without a measured time, time measurement does not work. */
const LAUNCHES_TO_TIME = 1_000;

/** The findings about a container at this moment. */
export function audit(view: AuditView): Finding[] {
  const usesOfOtherGpus = view.usesOfOtherGpus.map(({ gpuUuid, process }): Finding => ({
    code: 'wrong-gpu',
    subject: gpuUuid,
    message: `${list([process])} uses ${gpuUuid}, which is not allocated to the container`,
    serious: true,
    proof: true,
  }));
  const limited = view.devices.some(({ memoryLimitBytes, share }) => memoryLimitBytes !== null || share < 100);
  if (!limited) return usesOfOtherGpus;
  if (view.unenforced === true) return [...usesOfOtherGpus, ...view.devices.flatMap(auditUnenforced)];
  const bypass = auditProcesses(view);
  return [
    ...usesOfOtherGpus,
    ...auditInjection(view),
    ...auditDriverLimit(view),
    ...auditNamespace(view),
    ...bypass,
    ...auditSessions(view),
    // Processes without the library explain time that was not charged for a moment.
    ...auditDevices(
      bypass.length === 0 ? view.devices : view.devices.map((one) => ({ ...one, unchargedPercent: null })),
    ),
    ...auditFile(view),
  ];
}

/**
 * Memory beyond the allocation belongs to other slices; time beyond the allocated share may be time that other slices
 * leave unused.
 */
function auditUnenforced(device: AuditedDevice): Finding[] {
  const { gpuUuid, share, usedPercent = null } = device;
  const findings = auditMemory(device);
  if (usedPercent === null || usedPercent <= share + OVER_SHARE_PERCENT) return findings;
  const message = `${Math.round(usedPercent)} % of the time of ${gpuUuid} in use, ${share} % are allocated; the container is unenforced`;
  return [...findings, { code: 'over-share', subject: gpuUuid, message, serious: false }];
}

/**
 * This alone is no reason to evict the pod: use of a GPU shows whether a process really bypasses the control library.
 */
function auditInjection({ uninjected = [] }: AuditView): Finding[] {
  if (uninjected.length === 0) return [];
  const message = `the container was created without settings that its slice needs: ${uninjected.join('; ')}`;
  return [{ code: 'not-injected', subject: '', message, serious: false, certain: true }];
}

/** A container cannot do this itself: another program with the rights of root did. */
function auditDriverLimit({ limitChanged = null }: AuditView): Finding[] {
  if (limitChanged === null) return [];
  return [{ code: 'limit-changed', subject: '', message: limitChanged, serious: false, certain: true }];
}

function auditNamespace({ outsideNamespace = null }: AuditView): Finding[] {
  if (outsideNamespace === null) return [];
  return [
    { code: 'outside-namespace', subject: '', message: outsideNamespace, serious: true, certain: true, proof: true },
  ];
}

function auditProcesses({ processes, sessions }: AuditView): Finding[] {
  // A process that did not greet this agent but has a slot in the usage file greets at its next launch, and does no GPU
  // work before. A greeting and a slot are easy to forge, so the mapped library decides if it can be read.
  const foreignProcesses = processes.filter(
    ({ greeted, claimed, active, library }) => library === false || (!greeted && (!claimed || active)),
  );
  const twice = foreignProcesses.some(({ again }) => again) ? { twice: true as const } : {};
  if (foreignProcesses.length > 0 && sessions.length === 0 && !processes.some(({ claimed }) => claimed)) {
    const message =
      `${list(foreignProcesses)} use the GPU, and no process of the container has loaded the control library: ` +
      'its image sets LD_LIBRARY_PATH, or another runtime put the real driver in its place';
    return [{ code: 'no-library', subject: '', message, serious: true, proof: true, ...twice }];
  }
  if (foreignProcesses.length === 0) return [];
  const forged = foreignProcesses.some(({ greeted }) => greeted) ? ', but sent the greeting of the library' : '';
  const verb = foreignProcesses.length === 1 ? 'uses' : 'use';
  const message = `${list(foreignProcesses)} ${verb} the GPU without the control library${forged}`;
  return [{ code: 'unregistered', subject: '', message, serious: true, proof: true, ...twice }];
}

function list(processes: readonly Pick<AuditedProcess, 'pid' | 'name'>[]): string {
  const shown = processes.slice(0, 5).map(({ pid, name }) => `${name} (${pid})`);
  return processes.length > shown.length
    ? `${shown.join(', ')} and ${processes.length - shown.length} more`
    : shown.join(', ');
}

/** The meaning of each failed part of the self test; null: no finding by itself. */
const SELF_TEST_FAILURES: Readonly<Record<keyof SelfTest, string | null>> = {
  driverFound: "did not find the driver's functions",
  lookupKnown: 'hands out functions of the driver that it does not recognise: this driver is newer than the library',
  devicesMatched: 'sees GPUs that its limits do not list',
  sessionOpen: null,
  eventsWork: null,
};

const SELF_TESTS = Object.keys(SELF_TEST_FAILURES) as (keyof SelfTest)[];

function auditSessions({ devices, sessions }: AuditView): Finding[] {
  return sessions.flatMap((session) => auditSession(session, devices));
}

/** Memory and time that the driver counts on a GPU and the slice does not: proof of use past the control library. */
function evidenceOn(device: AuditedDevice): string[] {
  const { gpuUuid, memoryLimitBytes, share, uncountedMemoryBytes, unchargedTimePpm } = device;
  const evidence: string[] = [];
  if (memoryLimitBytes !== null && uncountedMemoryBytes !== null && uncountedMemoryBytes > UNCOUNTED_BYTES)
    evidence.push(`${mib(uncountedMemoryBytes)} on ${gpuUuid} are not counted`);
  if (share < 100 && unchargedTimePpm !== null && unchargedTimePpm > UNCHARGED_TIME_PPM)
    evidence.push(`${Math.round(unchargedTimePpm / 10_000)} % of the time of ${gpuUuid} are not charged`);
  return evidence;
}

function auditSession({ pid, slot, onGpu }: AuditedSession, devices: readonly AuditedDevice[]): Finding[] {
  const subject = String(pid ?? '?');
  if (slot === null) {
    return [
      {
        code: 'tampered',
        subject,
        message: `process ${subject} sent a greeting for a slot that the usage file does not have`,
        serious: true,
      },
    ];
  }
  const failures = SELF_TESTS.flatMap((test) => (slot.selfTest[test] ? [] : (SELF_TEST_FAILURES[test] ?? [])));
  // The process may never call such a function, or the function may do nothing that limits apply to.
  if (slot.unhooked > 0) failures.push(`handed out ${slot.unhooked} functions of the driver that it does not limit`);
  const findings: Finding[] = slot.hasUnreadLinks
    ? [{ code: 'links-unread', subject, message: unreadBy(`${slot.name} (${subject})`), serious: false }]
    : [];
  if (failures.length === 0 || !onGpu) return findings;
  const evidence = devices.flatMap(evidenceOn);
  return [
    ...findings,
    {
      code: 'not-enforcing',
      subject,
      message: [`the control library in ${slot.name} (${subject}) ${failures.join(', ')}`, ...evidence].join('; '),
      serious: !slot.selfTest.driverFound || evidence.length > 0,
    },
  ];
}

const unreadBy = (process: string): string =>
  `${process} cannot read when other slices on its GPU have work, because it has no descriptor left or another root ` +
  'directory: if it gives way to them, it does so all the time';

function auditMemory({ gpuUuid, memoryLimitBytes, usedMemoryBytes }: AuditedDevice): Finding[] {
  if (memoryLimitBytes === null || usedMemoryBytes === null) return [];
  if (usedMemoryBytes <= memoryLimitBytes + MEMORY_SLACK_BYTES) return [];
  const serious = usedMemoryBytes > memoryLimitBytes + MEMORY_SLACK_BYTES + MODULE_BYTES;
  const message = `${mib(usedMemoryBytes)} in use on ${gpuUuid}, the limit is ${mib(memoryLimitBytes)}`;
  const finding = { code: 'over-limit', subject: gpuUuid, message, serious } as const;
  if (!serious || usedMemoryBytes <= GROSS_FACTOR * memoryLimitBytes) return [finding];
  return [{ ...finding, certain: true, proof: true }];
}

/** Launches for which it had no tokens: only a changed usage file, clock or library lets a container make them. */
function auditShare({ gpuUuid, share, shareAccount = null, wentBack }: AuditedDevice): Finding[] {
  if (share >= 100 || shareAccount === null) return [];
  const { usedPpm, allowedPpm } = shareAccount;
  // A container that sets counters back hides launches: then all that it was charged counts.
  const overPpm = Math.max(shareAccount.overPpm, wentBack ? usedPpm - allowedPpm : 0);
  if (overPpm <= OVER_GRANT_PPM) return [];
  const [used, allowed] = [usedPpm, allowedPpm].map((ppm) => Math.round(ppm / 10_000));
  const message = `${used} % of the time of ${gpuUuid} in use over ten seconds, ${allowed} % are allowed`;
  return [{ code: 'over-share', subject: gpuUuid, message, serious: overPpm > GROSS_OVER_GRANT_PPM }];
}

/**
 * GPU time that no launch explains: over an account of seconds, or for a moment, which is a proof because then the
 * container had no launches that could explain it.
 */
function auditTime(device: AuditedDevice): Finding[] {
  const { gpuUuid, share, unchargedTimePpm, uncorrectableTimePpm = null, unchargedPercent = null } = device;
  const lasting = (uncorrectableTimePpm ?? 0) > UNCHARGED_TIME_PPM;
  if (share >= 100 || (!lasting && unchargedPercent === null)) return [];
  const percent = lasting ? (unchargedTimePpm ?? uncorrectableTimePpm ?? 0) / 10_000 : (unchargedPercent ?? 0);
  const proof = unchargedPercent !== null || (uncorrectableTimePpm ?? 0) > GROSS_UNCHARGED_TIME_PPM;
  return [
    {
      code: 'not-enforcing',
      subject: `${gpuUuid} time`,
      message: `${Math.round(percent)} % of the time of ${gpuUuid} ${lasting ? 'are' : 'were for a moment'} used and not charged`,
      serious: true,
      ...(proof ? { proof } : {}),
    },
  ];
}

function auditDevices(devices: readonly AuditedDevice[]): Finding[] {
  return devices.flatMap((device): Finding[] => {
    const findings = auditMemory(device);
    const { gpuUuid } = device;
    if (device.share < 100 && device.launches >= LAUNCHES_TO_TIME && device.samples === 0) {
      findings.push({
        code: 'not-enforcing',
        subject: gpuUuid,
        message: `launches on ${gpuUuid} cannot be timed: its share is enforced by estimate`,
        serious: false,
      });
    }
    findings.push(...auditTime(device), ...auditShare(device));
    if (device.wentBack)
      findings.push({
        code: 'tampered',
        subject: gpuUuid,
        message: `counters of ${gpuUuid} decreased`,
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
