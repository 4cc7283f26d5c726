import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { status } from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';
import { test } from 'tap';
import { WANTED_EVENTS } from '../../../src/agent/nri/plugin-service.js';
import { nriProto } from '../../../src/rpc/proto.js';
import { ChunkReader, encodeChunks } from '../../../src/rpc/ttrpc/chunk.js';
import { TtrpcClient } from '../../../src/rpc/ttrpc/ttrpc-client.js';
import { TtrpcServer } from '../../../src/rpc/ttrpc/ttrpc-server.js';
import { RpcRefusal, unary } from '../../../src/rpc/unary.js';
import { ManualClock } from '../../manual-clock.js';
import { eventually } from '../../harness/eventually.js';

interface Vector {
  readonly kind: 'stream' | 'chunks' | 'message';
  readonly case: string;
  readonly hex: string;
}

/** Bytes that the Go modules of the runtime wrote; see golden/main.go. */
const VECTORS = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../../test/rpc/ttrpc/vectors.json', import.meta.url)), 'utf8'),
) as readonly Vector[];

function bytesOf(what: string): Buffer {
  const vector = VECTORS.find((entry) => entry.case === what);
  if (vector === undefined) throw new Error(`no vector ${what}`);
  return Buffer.from(vector.hex, 'hex');
}

const { v1alpha1 } = nriProto().nri.pkg.api;
const { RegisterPlugin } = v1alpha1.Runtime.service;
const REGISTRATION = { plugin_name: 'gpu-manager', plugin_idx: '90' };
const RUNTIME = 2;

/** The result of the first call of a client that reads these bytes of a runtime. */
async function answered(stream: Buffer): Promise<unknown> {
  const client = new TtrpcClient(() => undefined, new ManualClock());
  const call = client.call(RegisterPlugin, REGISTRATION, 1_000);
  for (const { connection, bytes } of new ChunkReader().feed(stream)) if (connection === RUNTIME) client.receive(bytes);
  return call.catch((error: unknown) => error);
}

test('a registration equals the bytes of a plugin in Go', (t) => {
  const sent: Buffer[] = [];
  const client = new TtrpcClient((message) => sent.push(encodeChunks(RUNTIME, message)), new ManualClock());
  client.call(RegisterPlugin, REGISTRATION, 1_000).catch(() => undefined);
  t.equal(Buffer.concat(sent).toString('hex'), bytesOf('registration').toString('hex'));
  client.close();
  t.end();
});

test('the client reads the answers of a runtime in Go', async (t) => {
  t.same(await answered(bytesOf('registration answered')), {});
  const refusal = await answered(bytesOf('registration refused'));
  t.ok(
    refusal instanceof RpcRefusal && refusal.code === status.INVALID_ARGUMENT && refusal.message === 'no such index',
  );
  const unknown = await answered(bytesOf('unknown method answered'));
  t.ok(unknown instanceof RpcRefusal && unknown.code === status.UNIMPLEMENTED);
});

test('an answer equals the bytes of a runtime in Go', async (t) => {
  const sent: Buffer[] = [];
  const handlers = (register: () => Promise<object>) => ({ RegisterPlugin: unary(register) });
  const serve = async (register: () => Promise<object>): Promise<string> => {
    sent.length = 0;
    const server = new TtrpcServer({
      services: [{ definition: v1alpha1.Runtime.service, handlers: handlers(register) }],
      write: (message) => sent.push(encodeChunks(RUNTIME, message)),
    });
    for (const { bytes } of new ChunkReader().feed(bytesOf('registration'))) server.receive(bytes);
    await eventually(() => sent.length > 0, 'the answer');
    return Buffer.concat(sent).toString('hex');
  };
  const refused = bytesOf('registration refused').toString('hex');
  const refuse = async (): Promise<object> => {
    throw new RpcRefusal(status.INVALID_ARGUMENT, 'no such index');
  };
  t.equal(await serve(refuse), refused);
  // Go marks a payload as present also where it is empty.
  t.match(await serve(async () => ({})), /^0000000200000[0-9a-f]{3}0000000[02]0000000102/);
});

test('a long message is cut into the same chunks as by the Go module', (t) => {
  const [first, second] = [bytesOf('message of more than one chunk'), bytesOf('its second chunk')];
  const length = first.readUInt32BE(4) + second.readUInt32BE(4);
  const ours = encodeChunks(RUNTIME, Buffer.alloc(length));
  t.ok(ours.subarray(0, 8).equals(first));
  t.ok(ours.subarray(8 + 4_096, 8 + 4_096 + 8).equals(second));
  t.end();
});

const POD = { id: 's1', name: 'trainer', uid: 'u-1', namespace: 'team' };
const MOUNT = { destination: '/etc/vcuda', type: 'bind', source: '/vm/0123456789abcdef' };
const CONTAINER = {
  id: 'c1',
  pod_sandbox_id: 's1',
  name: 'main',
  state: 'CONTAINER_RUNNING',
  env: ['PATH=/bin', 'LD_LIBRARY_PATH=/opt'],
  mounts: [{ ...MOUNT, options: ['rbind', 'ro'] }],
  linux: { resources: { cpu: { cpus: '0-3', mems: '0' } } },
};

/** The fields that the agent reads from the runtime's messages. */
const READ: Readonly<Record<string, readonly [keyof typeof v1alpha1, object]>> = {
  ConfigureRequest: [
    'ConfigureRequest',
    { runtime_name: 'containerd', runtime_version: 'v2.3.7', registration_timeout: '5000', request_timeout: '2000' },
  ],
  SynchronizeRequest: ['SynchronizeRequest', { pods: [POD], containers: [CONTAINER], more: true }],
  CreateContainerRequest: [
    'CreateContainerRequest',
    { pod: { ...POD, annotations: { 'tencent.com/gpu-numa': 'strict' } }, container: CONTAINER },
  ],
  StopContainerRequest: ['ContainerRequest', { pod: { id: 's1', uid: '' }, container: CONTAINER }],
  StateChangeEvent: ['StateChangeEvent', { event: 'REMOVE_POD_SANDBOX', pod: POD, container: null }],
};

for (const [what, [type, meaning]] of Object.entries(READ)) {
  test(`the agent reads ${what} of a runtime`, (t) => {
    const definition = v1alpha1[type] as unknown as MessageTypeDefinition<object, object>;
    t.match(definition.deserialize(bytesOf(what)), meaning);
    t.end();
  });
}

/** The agent's answers. */
const WRITTEN: Readonly<Record<string, readonly [keyof typeof v1alpha1, object]>> = {
  ConfigureResponse: ['ConfigureResponse', { events: WANTED_EVENTS }],
  SynchronizeResponse: ['SynchronizeResponse', { update: [], more: true }],
  CreateContainerResponse: [
    'CreateContainerResponse',
    {
      adjust: {
        env: [{ key: '-LD_LIBRARY_PATH' }, { key: 'LD_LIBRARY_PATH', value: '/usr/local/nvidia/lib64:/opt' }],
        mounts: [{ destination: '-/etc/vcuda' }, { ...MOUNT, options: ['rbind', 'rprivate', 'ro', 'nosuid', 'nodev'] }],
        linux: { resources: { cpu: { cpus: '2-3' } } },
      },
    },
  ],
  'CreateContainerResponse empty': ['CreateContainerResponse', { adjust: null }],
};

for (const [what, [type, meaning]] of Object.entries(WRITTEN)) {
  test(`${what} equals the bytes of a plugin in Go`, (t) => {
    const definition = v1alpha1[type] as unknown as MessageTypeDefinition<object, object>;
    t.equal(definition.serialize(meaning).toString('hex'), bytesOf(what).toString('hex'));
    t.end();
  });
}
