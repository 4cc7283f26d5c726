/**
 * A program that listens for HTTP and has much to show, in a process of its own that a test attacks. Prints one line
 * with its ports and paths, and ends with its standard input.
 *
 *     listener-program.js NAME
 */
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { probeListener } from '../../src/http/probe-listener.js';
import { fixedTls } from '../../src/http/tls.js';
import { TokenAccess } from '../../src/http/token-access.js';
import { ANY_CALLER } from '../../src/kube/admission/review-callers.js';
import { WebhookServer } from '../../src/kube/admission/webhook-server.js';
import { WebhookMetrics } from '../../src/claim-webhook/webhook-metrics.js';
import { allocation, gpu, node as nodeSnapshot, served, slice, viewOf } from '../agent/display/fixture.js';
import { clusterObjects } from '../console/cluster-objects.js';
import { runningConsole } from '../console/fixture.js';
import { certificateAuthority } from '../harness/certificate.js';
import { PROGRAMS } from '../http/servers.js';
import { node } from '../scheduler/objects.js';
import { start } from '../scheduler/scheduler.js';
import type { AttackedListener } from './attacked-listener.js';

type Open = () => Promise<AttackedListener>;

/** The process ends all at once. */
const t = { teardown: () => undefined } as never;

const identity = async () => (await certificateAuthority()).server(['localhost', '127.0.0.1']);

/** A node with 16 GPUs and 256 containers. */
function bigView() {
  const gpus = Array.from({ length: 16 }, (_, index) => gpu(index));
  const allocations = Array.from({ length: 256 }, (_, index) =>
    allocation(`pod-${index}`, [slice(gpus[index % 16] ?? gpu(0), { allocatedCores: 6, share: 6 })]),
  );
  const snapshot = nodeSnapshot({ gpus, allocations });
  return viewOf(() => snapshot);
}

const AGENT_PATHS = ['/metrics', '/usage', '/api/node', '/api/events', '/nothing'];

const LISTENERS: Readonly<Record<string, Open>> = {
  agent: async () => {
    const { server } = await served(t, bigView());
    return { port: server.port, isTls: false, paths: AGENT_PATHS };
  },
  'agent-tls-token': async () => {
    const access = new TokenAccess(() => new Promise(() => undefined), systemClock);
    const { server } = await served(t, bigView(), { certificate: fixedTls(await identity()), access });
    return { port: server.port, isTls: true, paths: AGENT_PATHS };
  },
  'agent-tls': async () => {
    const { server } = await served(t, bigView(), { certificate: fixedTls(await identity()) });
    return { port: server.port, isTls: true, paths: AGENT_PATHS };
  },
  probes: async () => {
    const listener = probeListener({ address: '127.0.0.1', port: 0, notReady: () => [], log: silentLog() });
    await listener.start();
    return { port: listener.port, isTls: false, paths: ['/metrics', '/nothing'] };
  },
  extender: async () => {
    const nodes = Array.from({ length: 1_000 }, (_, index) => node(`node-${index}`, [16, 16, 16, 16]));
    const { extender } = await start(t, nodes);
    return { port: extender.port, isTls: false, paths: ['/metrics', '/version', '/nothing'] };
  },
  quota: async () => {
    const { port } = (await PROGRAMS.find(({ name }) => name === 'webhook')?.serve(t, true)) ?? { port: 0 };
    return { port, isTls: true, paths: ['/metrics', '/nothing'] };
  },
  'claim-webhook': async () => {
    const metrics = new WebhookMetrics();
    const server = new WebhookServer({
      address: '127.0.0.1',
      port: 0,
      probePort: null,
      certificate: { ...(await identity()), authority: '' },
      callers: ANY_CALLER,
      reviews: {},
      notReady: () => null,
      decided: () => undefined,
      metrics: metrics.page,
      register: async () => undefined,
      log: silentLog(),
      clock: systemClock,
    });
    await server.start();
    return { port: server.port, isTls: true, paths: ['/metrics', '/nothing'] };
  },
  console: async () => {
    const { base } = await runningConsole(
      t,
      (server) => {
        for (const { resource, object } of clusterObjects(500, 1)) server.seed(resource, object);
      },
      { tokenReview: false },
    );
    return { port: Number(new URL(base).port), isTls: false, paths: ['/api/cluster', '/api/whoami', '/nothing'] };
  },
};

const name = process.argv[2] ?? '';
const open = LISTENERS[name];
if (open === undefined) throw new Error(`no listener ${name}; one of ${Object.keys(LISTENERS).join(', ')}`);
console.log(JSON.stringify(await open()));
process.stdin.on('end', () => process.exit(0)).resume();
