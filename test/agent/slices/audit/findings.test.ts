import { test } from 'tap';
import type { Finding } from '../../../../src/agent/slices/audit/audit.js';
import {
  advance,
  NO_FINDINGS,
  reportedFindings,
  type FindingState,
} from '../../../../src/agent/slices/audit/findings.js';

const serious: Finding = { code: 'tampered', subject: 'file', message: 'm', serious: true };
const mild: Finding = { code: 'over-limit', subject: 'GPU-0', message: 'm', serious: false };
const bypass: Finding = { code: 'no-library', subject: '', message: 'm', serious: true, proof: true };
const gross: Finding = { ...mild, serious: true, certain: true, proof: true };
const none = { raised: 0, cleared: 0, evict: false, standing: 0 };

function audits(policy: 'report' | 'evict', ...found: (readonly Finding[])[]) {
  let state: FindingState = NO_FINDINGS;
  return found.map((findings) => {
    const news = advance(state, findings, policy);
    state = news.state;
    return {
      raised: news.raised.length,
      cleared: news.cleared.length,
      evict: news.evict !== null,
      standing: reportedFindings(state).length,
    };
  });
}

test('a finding is reported when it persists, not after one observation, and is resolved when it disappears', (t) => {
  t.same(audits('report', [mild], [], [mild], [mild], [mild], []), [
    none,
    none,
    none,
    { ...none, raised: 1, standing: 1 },
    { ...none, standing: 1 },
    { ...none, cleared: 1 },
  ]);
  t.end();
});

test('only serious findings evict, only where eviction is enabled, and again after some time', (t) => {
  const evictions = (policy: 'report' | 'evict', finding: Finding) =>
    audits(policy, ...Array.from({ length: 16 }, () => [finding])).flatMap(({ evict }, at) => (evict ? [at] : []));
  t.same(evictions('evict', serious), [2, 14]);
  t.same(evictions('evict', bypass), [1, 13]);
  t.same(evictions('evict', mild), []);
  t.same(evictions('report', serious), []);
  t.same(evictions('report', bypass), []);
  t.end();
});

test('a bypass that comes and goes is reported and evicts at its second occurrence, within an hour', (t) => {
  const away = (count: number): readonly Finding[][] => Array.from({ length: count }, () => []);
  const second = (count: number) => audits('evict', [bypass], ...away(count), [bypass]).at(-1);
  t.same(second(1), { ...none, raised: 1, evict: true, standing: 1 });
  t.same(second(700), { ...none, raised: 1, evict: true, standing: 1 });
  t.same(second(720), none);
  t.end();
});

test('what one audit proves stays a proof when the next one shows less of it', (t) => {
  const less: Finding = { code: 'no-library', subject: '', message: 'm', serious: true };
  t.same(audits('evict', [bypass], [less], [], [bypass]).at(-1), { ...none, raised: 1, evict: true, standing: 1 });
  t.same(audits('evict', [bypass], [], [less]).at(-1), none, 'of another occurrence it is not');
  t.end();
});

test('it is one finding, whether other processes of the container have the library or not', (t) => {
  const other: Finding = { ...bypass, code: 'unregistered' };
  t.match(audits('evict', [bypass], [], [other]).at(-1), { raised: 1, evict: true });
  t.end();
});

test('memory far beyond the limit is reported at once, and evicts at its second occurrence', (t) => {
  t.same(audits('evict', [gross], [], [gross]), [
    { ...none, raised: 1, standing: 1 },
    { ...none, cleared: 1 },
    { ...none, raised: 1, evict: true, standing: 1 },
  ]);
  t.end();
});
