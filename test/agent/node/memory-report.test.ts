import { test } from 'tap';
import { memoryCondition, MemoryReport, type EnforcedGpu } from '../../../src/agent/node/memory-report.js';
import { ManualClock } from '../../manual-clock.js';

const misc = (index: number): EnforcedGpu => ({ index, enforcer: { by: 'driver', backend: 'misc' } });
const library = (index: number, reason: string | null): EnforcedGpu => ({
  index,
  enforcer: { by: 'library', reason },
});

test('a node whose driver has no memory limits has no condition', async (t) => {
  t.equal(memoryCondition([library(0, null), library(1, null)], false), null);
  t.equal(memoryCondition([], false), null);
});

test('the condition says whether the driver keeps the limits of all GPUs, or why not', async (t) => {
  t.same(memoryCondition([misc(0), misc(1)], false), {
    status: 'True',
    reason: 'DriverEnforces',
    message: 'the driver enforces memory limits (misc)',
  });
  t.same(memoryCondition([misc(0), library(1, 'the driver keeps no memory limits on MIG instances')], false), {
    status: 'False',
    reason: 'LibraryEnforces',
    message:
      'the control library alone enforces memory limits: GPU 1: the driver keeps no memory limits on MIG instances',
  });
  t.match(memoryCondition([misc(0)], true), { status: 'False', reason: 'LimitsDisputed' });
});

test('the condition is written when it changes', async (t) => {
  const clock = new ManualClock();
  let gpus = [misc(0)];
  const written: (string | undefined)[] = [];
  const report = new MemoryReport({
    condition: { set: (state) => void written.push(state?.status) },
    gpus: () => gpus,
    hasDispute: () => false,
    clock,
  });
  await report.start();
  clock.advance(10_000);
  gpus = [library(0, '--memory-enforcement=library')];
  clock.advance(10_000);
  await report.stop();
  t.same(written, ['True', 'False']);
});
