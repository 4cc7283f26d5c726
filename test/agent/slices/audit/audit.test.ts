import { test } from 'tap';
import {
  audit,
  type AuditedDevice,
  type AuditedProcess,
  type AuditedSession,
  type AuditView,
} from '../../../../src/agent/slices/audit/audit.js';
import { advance, NO_FINDINGS, reportedFindings } from '../../../../src/agent/slices/audit/findings.js';
import type { ProcessSlot } from '../../../../src/abi/usage-file.js';

const MIB = 2 ** 20;

const process_ = (pid: number, changes: Partial<AuditedProcess> = {}): AuditedProcess => ({
  pid,
  name: 'python3',
  greeted: true,
  claimed: false,
  active: true,
  ...changes,
});

const slot = (changes: Partial<ProcessSlot> = {}): ProcessSlot => ({
  slot: 0,
  pid: 1,
  startTicks: 1,
  name: 'python3',
  selfTest: { driverFound: true, lookupKnown: true, devicesMatched: true, sessionOpen: true, eventsWork: true },
  unhooked: 0,
  obstacles: [],
  hasUnreadLinks: false,
  ...changes,
});

const session = (pid: number, changes: Partial<AuditedSession> = {}): AuditedSession => ({
  pid,
  slot: slot(),
  onGpu: true,
  ...changes,
});

const device = (changes: Partial<AuditedDevice> = {}): AuditedDevice => ({
  gpuUuid: 'GPU-0',
  memoryLimitBytes: 1024 * MIB,
  usedMemoryBytes: 512 * MIB,
  share: 30,
  launches: 5_000,
  samples: 100,
  wentBack: false,
  uncountedMemoryBytes: 300 * MIB,
  unchargedTimePpm: 5_000,
  ...changes,
});

const view = (changes: Partial<AuditView> = {}): AuditView => ({
  processes: [process_(100)],
  sessions: [session(100)],
  devices: [device()],
  usesOfOtherGpus: [],
  fileProblem: null,
  fileGrown: null,
  ...changes,
});

const codes = (changes: Partial<AuditView>): string[] =>
  audit(view(changes)).map(({ code, serious }) => `${code}${serious ? '!' : ''}`);

test('a container within its limits has no finding', (t) => {
  t.same(audit(view()), []);
  t.same(audit(view({ processes: [], sessions: [] })), []);
  t.end();
});

test('GPU processes without the library are reported with the usual causes', (t) => {
  const found = audit(
    view({
      processes: [process_(100, { greeted: false }), process_(101, { greeted: false, name: 'nvidia-smi' })],
      sessions: [],
    }),
  );
  t.match(found, [
    {
      code: 'no-library',
      subject: '',
      serious: true,
      message: /^python3 \(100\), nvidia-smi \(101\) use the GPU.*LD_LIBRARY_PATH/,
    },
  ]);
  const many = Array.from({ length: 9 }, (_, at) => process_(at, { greeted: false }));
  t.match(audit(view({ processes: many, sessions: [] })), [{ message: /\(4\) and 4 more use/ }]);
  t.end();
});

test('one process without the library among others is reported by itself', (t) => {
  t.match(audit(view({ processes: [process_(100), process_(101, { greeted: false })] })), [
    { code: 'unregistered', subject: '', serious: true, proof: true },
  ]);
  t.end();
});

test('a process from before this agent is known by its slot, until it works without a new greeting', (t) => {
  const old = { greeted: false, claimed: true };
  t.same(codes({ processes: [process_(100, { ...old, active: false })], sessions: [] }), []);
  t.same(codes({ processes: [process_(100, { ...old, active: true })], sessions: [] }), ['unregistered!']);
  t.end();
});

for (const [test_, says] of [
  ['driverFound', /did not find the driver/],
  ['lookupKnown', /newer than the library/],
  ['devicesMatched', /does not list|do not list/],
] as const) {
  test(`a library whose self test ${test_} failed does not enforce limits, and the finding gives the reason`, (t) => {
    const failed = slot({ selfTest: { ...slot().selfTest, [test_]: false } });
    t.match(audit(view({ sessions: [session(100, { slot: failed })] })), [
      { code: 'not-enforcing', subject: '100', message: says },
    ]);
    t.same(
      audit(view({ sessions: [session(100, { slot: failed, onGpu: false })] })),
      [],
      'before the process uses the GPU there is no evidence',
    );
    t.end();
  });
}

test('driver functions without a hook are reported, and do not evict by themselves', (t) => {
  const sessions = [session(100, { slot: slot({ unhooked: 2 }) })];
  t.match(audit(view({ sessions })), [
    { code: 'not-enforcing', serious: false, message: /handed out 2 functions of the driver that it does not limit$/ },
  ]);
  let state = NO_FINDINGS;
  for (let audits = 0; audits < 20; audits++) {
    const news = advance(state, audit(view({ sessions })), 'evict');
    t.equal(news.evict, null);
    state = news.state;
  }
  t.equal(reportedFindings(state).length, 1, 'the finding is still reported');
  t.end();
});

test('memory or time that the driver reports and the slice does not is evidence of a bypass', (t) => {
  const sessions = [session(100, { slot: slot({ unhooked: 1 }) })];
  const serious = (changes: Partial<AuditedDevice>) =>
    audit(view({ sessions, devices: [device(changes)] })).some((finding) => finding.serious);
  t.notOk(serious({ uncountedMemoryBytes: 1024 * MIB }), 'a context');
  t.ok(serious({ uncountedMemoryBytes: 1200 * MIB }));
  t.notOk(serious({ uncountedMemoryBytes: 1200 * MIB, memoryLimitBytes: null }), 'memory is not limited');
  t.ok(serious({ unchargedTimePpm: 150_000 }));
  t.notOk(serious({ unchargedTimePpm: 90_000 }), 'charges are estimates');
  t.notOk(serious({ unchargedTimePpm: 900_000, share: 100 }), 'no charge');
  t.notOk(serious({ uncountedMemoryBytes: null, unchargedTimePpm: null }), 'the driver does not report the usage');
  t.match(audit(view({ sessions, devices: [device({ unchargedTimePpm: 150_000 })] })), [
    { message: /does not limit; 15 % of the time of GPU-0 are not charged/ },
  ]);
  t.same(codes({ devices: [device({ uncountedMemoryBytes: 1200 * MIB, unchargedTimePpm: 150_000 })] }), []);
  t.end();
});

test('a library that found no driver is a reason to evict when its process uses the GPU', (t) => {
  const blind = slot({ selfTest: { ...slot().selfTest, driverFound: false } });
  t.match(audit(view({ sessions: [session(100, { slot: blind })] })), [{ code: 'not-enforcing', serious: true }]);
  t.end();
});

test('a greeting with the slot of another process is tampering', (t) => {
  t.match(audit(view({ sessions: [session(100, { slot: null })] })), [
    { code: 'tampered', subject: '100', serious: true },
  ]);
  t.match(audit(view({ sessions: [session(100), { pid: null, slot: null, onGpu: false }] })), [
    { code: 'tampered', subject: '?' },
  ]);
  t.end();
});

test('memory over the limit is reported, and memory far over the limit is serious', (t) => {
  t.same(codes({ devices: [device({ usedMemoryBytes: 1080 * MIB })] }), []);
  t.same(codes({ devices: [device({ usedMemoryBytes: 1200 * MIB })] }), ['over-limit']);
  t.same(codes({ devices: [device({ usedMemoryBytes: 2200 * MIB })] }), ['over-limit!']);
  const certain = (bytes: number): boolean[] =>
    audit(view({ devices: [device({ memoryLimitBytes: 4096 * MIB, usedMemoryBytes: bytes })] })).map(
      (finding) => finding.certain === true && finding.proof === true,
    );
  t.same(certain(5000 * MIB), [false], 'within a quarter more than the limit');
  t.same(certain(5200 * MIB), [true]);
  t.same(
    codes({ devices: [device({ usedMemoryBytes: 2200 * MIB })], processes: [process_(100), process_(101)] }),
    ['over-limit!'],
    'for any number of processes',
  );
  t.same(codes({ devices: [device({ usedMemoryBytes: null })] }), []);
  t.same(codes({ devices: [device({ memoryLimitBytes: null, usedMemoryBytes: 1e12 })] }), []);
  t.end();
});

test('more time than the share or grant allows is reported, and far more is serious', (t) => {
  const over = (overPpm: number, changes: Partial<AuditedDevice> = {}): string[] =>
    codes({
      devices: [device({ shareAccount: { usedPpm: 300_000 + overPpm, allowedPpm: 300_000, overPpm }, ...changes })],
    });
  t.same(over(50_000), []);
  t.same(over(60_000), ['over-share']);
  t.same(over(370_000), ['over-share!']);
  t.same(over(370_000, { share: 100 }), [], 'a GPU without a limit of time');
  t.same(codes({ devices: [device({ shareAccount: null })] }), []);
  t.end();
});

test('a process that cannot read when others have work is reported, and not evicted', (t) => {
  const unread = session(100, { slot: slot({ hasUnreadLinks: true }) });
  t.match(audit(view({ sessions: [unread] })), [
    { code: 'links-unread', subject: '100', serious: false, message: /^python3 \(100\) cannot read when other slices/ },
  ]);
  t.end();
});

test('launches that cannot be timed, and counters that decrease, are reported', (t) => {
  t.same(codes({ devices: [device({ samples: 0 })] }), ['not-enforcing']);
  t.same(codes({ devices: [device({ samples: 0, launches: 10 })] }), []);
  t.same(codes({ devices: [device({ samples: 0, share: 100 })] }), []);
  t.same(codes({ devices: [device({ wentBack: true })] }), ['tampered']);
  t.end();
});

test('a change of the usage file as a file is reported with the kind of change', (t) => {
  t.match(audit(view({ fileProblem: '0 bytes instead of 335872' })), [
    { code: 'tampered', subject: 'file', message: /0 bytes instead of 335872/, serious: true },
  ]);
  t.end();
});

test('use of a GPU that was not allocated is reported, with limits or without', (t) => {
  const usesOfOtherGpus = [{ gpuUuid: 'GPU-7', process: { pid: 100, name: 'miner' } }];
  t.match(audit(view({ usesOfOtherGpus, devices: [device({ memoryLimitBytes: null, share: 100 })] })), [
    { code: 'wrong-gpu', message: 'miner (100) uses GPU-7, which is not allocated to the container', serious: true },
  ]);
  t.end();
});

test('whole GPUs without limits have no finding', (t) => {
  const whole = device({ memoryLimitBytes: null, share: 100 });
  t.same(
    audit(
      view({
        processes: [process_(1, { greeted: false })],
        sessions: [],
        devices: [whole],
        fileProblem: 'x',
      }),
    ),
    [],
  );
  t.end();
});

test('an unenforced container is compared with its allocation only', (t) => {
  const past = [process_(100, { greeted: false, library: false })];
  const unenforced = (of: Partial<AuditedDevice>) =>
    codes({ unenforced: true, processes: past, sessions: [], devices: [device({ unchargedTimePpm: 900_000, ...of })] });
  t.same(unenforced({ usedPercent: 38 }), [], 'a report is not more exact than that');
  t.same(unenforced({ usedPercent: 60 }), ['over-share'], 'idle time may belong to any container');
  t.same(unenforced({ usedMemoryBytes: 1100 * MIB }), ['over-limit']);
  t.same(unenforced({ usedMemoryBytes: 2048 * MIB, usedPercent: 100 }), ['over-limit!', 'over-share']);
  t.same(unenforced({ usedMemoryBytes: null, usedPercent: null }), [], 'a driver that reports nothing');
  const usesOfOtherGpus = [{ gpuUuid: 'GPU-1', process: { pid: 100, name: 'x' } }];
  t.same(codes({ unenforced: true, usesOfOtherGpus }), ['wrong-gpu!']);
  t.end();
});
