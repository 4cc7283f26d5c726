/**
 * A pod on the cluster network that opens idle connections: the kubelet's probes have to be answered, or the kubelet
 * restarts the agent.
 */
import { connect, type Socket } from 'node:net';
import { test, type Test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { LISTENER_LIMITS } from '../../src/http/limits.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { cards } from '../agent/gpus.js';
import { scratchDirectory } from '../scratch.js';

/** Idle connections from as many addresses of loopback. */
async function silent(t: Test, port: number, count: number): Promise<Socket[]> {
  const sockets = await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (index % 250)}` });
      socket.on('error', () => undefined);
      return new Promise<Socket>((resolve) => {
        socket.once('connect', () => resolve(socket));
        socket.once('close', () => resolve(socket));
      });
    }),
  );
  t.teardown(async () => sockets.forEach((socket) => socket.destroy()));
  return sockets;
}

async function nodeWithProbes(t: Test) {
  const node = new SimulatedNode({
    directory: await scratchDirectory(t),
    gpus: cards(1),
    log: silentLog(),
    config: { probes: { address: '127.0.0.1', port: 0 } },
  });
  await node.start();
  t.teardown(() => node.stop());
  return node.agent;
}

test('the agent answers probes on their own port while the other port is full, and on the full port too', async (t) => {
  const agent = await nodeWithProbes(t);
  const probePort = agent.probePort() ?? 0;
  t.not(probePort, agent.httpPort());
  await silent(t, agent.httpPort(), LISTENER_LIMITS.connections);
  for (let times = 0; times < 3; times++)
    for (const port of [probePort, agent.httpPort()])
      for (const path of ['/healthz', '/readyz'])
        t.equal((await fetch(`http://127.0.0.1:${port}${path}`)).status, 200, `${port}${path}`);
});

test('idle connections cannot fill the port of the probes, which answers only probes', async (t) => {
  const agent = await nodeWithProbes(t);
  const url = `http://127.0.0.1:${agent.probePort()}`;
  await silent(t, agent.probePort() ?? 0, 500);
  t.equal((await fetch(`${url}/healthz`)).status, 200);
  for (const path of ['/', '/metrics', '/usage', '/api/node']) t.equal((await fetch(url + path)).status, 404, path);
});
