import { test } from 'tap';
import {
  nextToResume,
  nextToSuspend,
  type PlannedProcess,
} from '../../../../src/agent/slices/suspend/suspension-plan.js';
import type { ProcessState } from '../../../../src/agent/slices/suspend/checkpoint-program.js';

const one = (pid: number, state: PlannedProcess['state'], isStuck = false): PlannedProcess => ({
  pid,
  bytes: 10,
  state,
  isStuck,
});

test('all processes are locked, and looked for again, before any is checkpointed', async (t) => {
  t.match(nextToSuspend([one(1, 'locked'), one(2, 'running')], true), { kind: 'lock', process: { pid: 2 } });
  t.same(nextToSuspend([one(1, 'locked'), one(2, 'none')], false), { kind: 'look' });
  t.match(nextToSuspend([one(1, 'checkpointed'), one(2, 'locked')], true), { kind: 'checkpoint', process: { pid: 2 } });
  t.same(nextToSuspend([one(1, 'checkpointed'), one(2, 'none')], true), { kind: 'done' });
});

test('nothing is restored before there is room for all, and nothing is unlocked before all are restored', async (t) => {
  t.match(nextToResume([one(1, 'locked'), one(2, null)], false), { kind: 'state', process: { pid: 2 } });
  t.same(nextToResume([one(1, 'checkpointed'), one(2, 'locked'), one(3, 'checkpointed')], false), {
    kind: 'room',
    bytes: 20,
  });
  t.match(nextToResume([one(1, 'locked'), one(2, 'checkpointed')], true), { kind: 'restore', process: { pid: 2 } });
  t.match(nextToResume([one(1, 'checkpointed', true), one(2, 'locked')], true), {
    kind: 'unlock',
    process: { pid: 2 },
  });
  t.same(nextToResume([one(1, 'running'), one(2, 'none'), one(3, 'failed')], true), { kind: 'done' });
});

/** The driver's view of some processes; a call for a process in another state changes nothing, as in the driver. */
class Driver {
  readonly states: ProcessState[];
  calls = 0;

  constructor(count: number) {
    this.states = Array.from({ length: count }, () => 'running');
  }

  call(kind: string, pid: number): ProcessState {
    this.calls += 1;
    const [from, to] = {
      lock: ['running', 'locked'],
      checkpoint: ['locked', 'checkpointed'],
      restore: ['checkpointed', 'locked'],
      unlock: ['locked', 'running'],
    }[kind] ?? ['', ''];
    if (this.states[pid] === from) this.states[pid] = to as ProcessState;
    return this.states[pid] ?? 'failed';
  }
}

/** Goes one way for at most `steps` calls; true when it is done. */
function go(driver: Driver, suspends: boolean, steps: number, known: PlannedProcess['state'][]): boolean {
  let looked = false;
  let room = false;
  for (let at = 0; at < steps;) {
    const now = known.map((state, pid) => one(pid, state));
    const action = suspends ? nextToSuspend(now, looked) : nextToResume(now, room);
    if (action.kind === 'done') return true;
    if (action.kind === 'look') looked = true;
    else if (action.kind === 'room') room = true;
    else {
      known[action.process.pid] = driver.call(action.kind, action.process.pid);
      at += 1;
    }
  }
  return false;
}

test('an agent killed after any call, on either way, leaves what the next one brings back to running', async (t) => {
  for (let first = 0; first <= 6; first += 1)
    for (let second = 0; second <= 9; second += 1) {
      const driver = new Driver(3);
      go(driver, true, first, ['running', 'running', 'running']);
      // The second agent is killed on the way back, the third one is not. Neither knows where the first one was.
      go(driver, false, second, [null, null, null]);
      t.ok(go(driver, false, 100, [null, null, null]));
      t.same(driver.states, ['running', 'running', 'running'], `${first} calls there, ${second} back`);
    }
});

test('a resume that believes its record goes on from the real states', async (t) => {
  const driver = new Driver(2);
  driver.states[0] = 'locked';
  t.ok(go(driver, false, 100, ['checkpointed', 'checkpointed']));
  t.same(driver.states, ['running', 'running']);
  t.equal(driver.calls, 3);
});
