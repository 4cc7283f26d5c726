import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'tap';
import { auditStream, openAuditFile, verifyAuditFile, verifyAuditStream } from '../../../src/quota/index.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';
import { QuotaCluster } from '../cluster.js';

interface Line {
  readonly event: { readonly type: string; readonly group: string; readonly subject?: string; readonly actor?: string };
}

function eventsOf(lines: string): readonly string[] {
  return lines
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as Line).event)
    .map(({ type, group, subject = '', actor = '' }) => `${type} ${group} ${subject} ${actor}`.trim());
}

test('decisions of a service with their callers form a chain in a file that the next start continues', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  const path = join(await scratchDirectory(t), 'audit');
  for (const round of [1, 2]) {
    const opened = await openAuditFile(path);
    if (!opened.ok) throw new Error(opened.reason);
    const service = await on.join({ audited: opened.file.append });
    if (round === 1) await on.createGroup('team', { 'limits.cpu': 4 });
    t.match(await on.deploy(`web-${round}`, 'team', 1, 2), { ok: true });
    t.match(await on.deploy('large', 'team', 1, 5), { ok: false });
    await eventually(() => on.used('team') === String(round * 2), 'the ledger to follow');
    await on.leave(service);
    await opened.file.close();
    t.match(await verifyAuditFile(path), { ok: true });
  }
  const events = eventsOf(await readFile(path, 'utf8'));
  for (const expected of [
    'groupCreated team  tester',
    'reserved team Deployment.apps/default/web-1 tester',
    'confirmed team Deployment.apps/default/web-1',
    'reserved team Deployment.apps/default/web-2 tester',
  ])
    t.ok(events.includes(expected), `${expected} in ${events.join('; ')}`);
  t.equal(events.filter((event) => event === 'denied team Deployment.apps/default/large tester').length, 2);
  await writeFile(path, (await readFile(path, 'utf8')).replace('"tester"', '"nobody"'));
  t.match(await verifyAuditFile(path), { ok: false, reason: /changed/ });
});

test('a torn last line is cut off; a broken chain is not continued', async (t) => {
  const path = join(await scratchDirectory(t), 'audit');
  const event = { type: 'groupCreated' as const, at: 1, revision: 1, group: 'g' };
  const write = async (): Promise<void> => {
    const opened = await openAuditFile(path);
    if (!opened.ok) throw new Error(opened.reason);
    opened.file.append(event);
    await opened.file.close();
  };
  await write();
  const whole = await readFile(path, 'utf8');
  for (const torn of ['{', whole.slice(0, 40), whole.slice(0, -1)]) {
    await writeFile(path, `${whole}${torn}`);
    await write();
    t.match(await verifyAuditFile(path), { ok: true, end: { sequence: 2 } });
  }
  await writeFile(path, whole.slice(0, -1));
  await write();
  t.match(await verifyAuditFile(path), { ok: true, end: { sequence: 1 } });
  await writeFile(path, `${whole}{"sequence":9}\n`);
  t.match(await openAuditFile(path), { ok: false, line: 2 });
});

test('a chain is verified among the lines of a log, and a failing stream is reported once', async (t) => {
  const stream = new PassThrough();
  const audit = auditStream(stream);
  for (let at = 1; at <= 3; at++) {
    audit.append({ type: 'groupCreated', at, revision: at, group: 'g' });
    await audit.close();
    stream.write('{"level":"info","msg":"something else"}\n');
  }
  stream.end();
  const mixed = await text(stream);
  const source = (lines: string): AsyncIterable<Buffer> => PassThrough.from([Buffer.from(lines)]);
  t.match(await verifyAuditStream(source(mixed), undefined, true), { ok: true, end: { sequence: 3 } });
  t.match(await verifyAuditStream(source(mixed)), { ok: false, line: 2 });
  const without = mixed
    .split('\n')
    .filter((line) => !line.startsWith('{"sequence":2'))
    .join('\n');
  t.match(await verifyAuditStream(source(without), undefined, true), {
    ok: false,
    line: 4,
    reason: /does not continue/,
  });

  const broken = new PassThrough();
  broken.on('error', () => undefined);
  broken.destroy(new Error('the disk is full'));
  const failures: string[] = [];
  const failing = auditStream(broken, ({ message }) => failures.push(message));
  failing.append({ type: 'groupCreated', at: 1, revision: 1, group: 'g' });
  await t.rejects(failing.close());
  failing.append({ type: 'groupCreated', at: 2, revision: 2, group: 'g' });
  t.equal(failures.length, 1);
});
