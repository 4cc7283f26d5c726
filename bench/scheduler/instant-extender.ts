import { createServer, type IncomingMessage } from 'node:http';
import { systemClock } from '../../src/host/clock.js';
import { openKubeClient } from '../../src/kube/open-client.js';
import { bindPod } from '../../src/kube/pod-writes.js';

/** Where the shipped configuration of kube-scheduler looks for the extender. */
const PORT = 3456;

/** The fields of the arguments of extenders that this one reads, as Go writes them. */
interface Arguments {
  readonly NodeNames?: readonly string[];
  readonly PodName: string;
  readonly PodNamespace: string;
  readonly PodUID: string;
  readonly Node: string;
}

/*
 * The least that an extender can do: every node passes, none is preferred, and it binds. What this costs is the price
 * of the protocol, whoever answers.
 *
 *     node dist/bench/scheduler/instant-extender.js KUBECONFIG
 */
const client = await openKubeClient(process.argv[2] ?? '', systemClock);

async function answer(path: string, body: () => Promise<Arguments>): Promise<unknown> {
  if (path.endsWith('/predicates')) return { NodeNames: (await body()).NodeNames ?? [] };
  if (path.endsWith('/prioritize')) return [];
  if (!path.endsWith('/bind')) return {};
  const { PodName: name, PodNamespace: namespace, PodUID: uid, Node: node } = await body();
  const bound = await bindPod(client, { namespace, name, uid }, node, {}, () => true);
  return bound.ok ? {} : { Error: bound.message };
}

async function read(request: IncomingMessage): Promise<Arguments> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Arguments;
}

createServer((request, response) => {
  void answer(request.url ?? '', () => read(request)).then((result) => {
    const text = JSON.stringify(result);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
    response.end(text);
  });
}).listen(PORT, '127.0.0.1');
