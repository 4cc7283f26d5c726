import { join } from 'node:path';
import pino from 'pino';
import { test } from 'tap';
import { CdiGate } from '../../../src/agent/claims/cdi-gate.js';
import { examineCdi } from '../../../src/agent/claims/cdi-support.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { scratchDirectory } from '../../scratch.js';
import { serveCri } from '../runtimes/fake-cri.js';

test('the driver is registered when the runtime accepts CDI devices, and says why it is not before', async (t) => {
  const socket = join(await scratchDirectory(t), 'cri.sock');
  let enableCDI = false;
  const runtime = await serveCri(socket, 'v1', {
    Version: () => ({ runtime_name: 'containerd', runtime_version: '1.7.27', runtime_api_version: 'v1' }),
    Status: () => ({ info: { config: JSON.stringify({ enableCDI, cdiSpecDirs: ['/etc/cdi'] }) } }),
    ListPodSandbox: () => ({ items: [] }),
  });
  t.teardown(() => runtime.stop());
  const clock = new ManualClock();
  const lines: string[] = [];
  let registrations = 0;
  const config = {
    containerRuntimeEndpoint: `unix://${socket}`,
    dockerEndpoint: null,
    runtimeRequestTimeoutMs: 5_000,
    cdiPath: '/etc/cdi',
  };
  const gate = new CdiGate({
    examine: () => examineCdi(config),
    register: async () => {
      registrations += 1;
    },
    clock,
    log: pino({}, { write: (line: string) => void lines.push(line) }),
  });
  t.teardown(() => gate.close());
  await gate.open();
  t.equal(registrations, 0);
  t.match(gate.problem, /containerd 1\.7\.27 does not accept CDI devices/);
  t.match(lines.join(''), /"advice":"set enable_cdi = true/);
  enableCDI = true;
  clock.advance(30_000);
  await eventually(() => registrations === 1, 'the registration');
  t.equal(gate.problem, null);
});

test('a runtime that does not answer does not keep the driver from its registration', async (t) => {
  const clock = new ManualClock();
  let registered = false;
  const gate = new CdiGate({
    examine: () => new Promise(() => undefined),
    register: async () => {
      registered = true;
    },
    clock,
    log: pino({ level: 'silent' }),
  });
  const opened = gate.open();
  clock.advance(5_000);
  await opened;
  t.ok(registered);
});

test('a gate that was closed meanwhile registers nothing, and a registration that fails is tried again', async (t) => {
  const clock = new ManualClock();
  let rejects = true;
  let attempts = 0;
  const gate = new CdiGate({
    examine: async () => ({ support: { state: 'failed', what: 'no CDI', advice: null }, rejects }),
    register: async () => {
      attempts += 1;
      throw new Error('no kubelet');
    },
    clock,
    log: pino({ level: 'silent' }),
  });
  await gate.open();
  rejects = false;
  clock.advance(30_000);
  await eventually(() => attempts === 1, 'the first attempt');
  await eventually(() => {
    clock.advance(30_000);
    return attempts > 1;
  }, 'another attempt');
  const opened = gate.open();
  gate.close();
  const before = attempts;
  await opened;
  clock.advance(300_000);
  t.equal(attempts, before);
});
