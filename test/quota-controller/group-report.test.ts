import { test } from 'tap';
import { isWorthWriting } from '../../src/quota-controller/controller/group-report.js';

const NOW = Date.parse('2026-03-02T08:00:00Z');
const PERIOD_MS = 300_000;

const status = (used: string, rate: string) => ({
  lastReconcileTime: new Date(NOW - 60_000).toISOString(),
  used: { 'cash/limits.cpu': used, 'limits.cpu': '4' },
  burnRate: { 'cash/limits.cpu': rate },
});

test('hours of a pod that was first seen finished are reported at once', (t) => {
  t.equal(isWorthWriting(status('5.56', '0'), status('11.11', '0'), PERIOD_MS, NOW), true);
  t.equal(isWorthWriting(status('5.56', '0'), status('5.56', '0'), PERIOD_MS, NOW), false);
  t.end();
});

test('hours of running pods are reported once a period', (t) => {
  t.equal(isWorthWriting(status('5.56', '4'), status('5.63', '4'), PERIOD_MS, NOW), false);
  t.equal(isWorthWriting(status('5.56', '4'), status('5.90', '4'), PERIOD_MS, NOW + PERIOD_MS), true);
  t.end();
});
