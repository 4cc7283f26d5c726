import { status } from '@grpc/grpc-js';
import { test } from 'tap';
import { nriProto, ttrpcProto } from '../../../src/rpc/proto.js';
import { encodeMessage, MESSAGE_TYPE, MessageReader, type TtrpcMessage } from '../../../src/rpc/ttrpc/message.js';
import { TtrpcClient } from '../../../src/rpc/ttrpc/ttrpc-client.js';
import { TtrpcServer } from '../../../src/rpc/ttrpc/ttrpc-server.js';
import { RpcRefusal, unary } from '../../../src/rpc/unary.js';
import type { RpcHandler } from '../../../src/rpc/grpc-call.js';
import { ManualClock } from '../../manual-clock.js';
import { eventually } from '../../harness/eventually.js';

const { Plugin } = nriProto().nri.pkg.api.v1alpha1;
const { Configure, Synchronize, Shutdown } = Plugin.service;

/** A client and a server, connected directly. */
function pair(handlers: Readonly<Record<string, RpcHandler<never, unknown>>>, callsLimit?: number) {
  const clock = new ManualClock();
  const failures: unknown[] = [];
  const client = new TtrpcClient((message) => queueMicrotask(() => server.receive(message)), clock);
  const server = new TtrpcServer({
    services: [{ definition: Plugin.service, handlers }],
    write: (message) => queueMicrotask(() => client.receive(message)),
    onFailure: (error) => failures.push(error),
    ...(callsLimit === undefined ? {} : { callsLimit }),
  });
  return { client, server, clock, failures };
}

/** A server whose answers are kept, for requests that our client would not send. */
function exposed(handlers: Readonly<Record<string, RpcHandler<never, unknown>>> = {}) {
  const reader = new MessageReader();
  const answers: { streamId: number; code: number; message: string }[] = [];
  const server = new TtrpcServer({
    services: [{ definition: Plugin.service, handlers }],
    write: (bytes) => {
      for (const { streamId, payload } of reader.feed(bytes)) {
        const response = ttrpcProto().ttrpc.Response.deserialize(payload ?? Buffer.alloc(0));
        answers.push({ streamId, code: response.status?.code ?? 0, message: response.status?.message ?? '' });
      }
    },
  });
  return { server, answers };
}

function request(streamId: number, method: string, payload = Buffer.alloc(0)): Buffer {
  const service = 'nri.pkg.api.v1alpha1.Plugin';
  return encodeMessage({
    streamId,
    type: MESSAGE_TYPE.request,
    payload: ttrpcProto().ttrpc.Request.serialize({ service, method, payload }),
  });
}

async function codeOf(call: Promise<unknown>): Promise<number | null> {
  const error: unknown = await call.then(
    () => null,
    (failure: unknown) => failure,
  );
  return error instanceof RpcRefusal ? error.code : null;
}

test('a call reaches its method, and its caller gets the answer', async (t) => {
  const { client } = pair({
    Configure: unary(async ({ runtime_name }: { runtime_name: string }) => ({ events: runtime_name.length })),
  });
  t.same(await client.call(Configure, { runtime_name: 'containerd' }, 1_000), { events: 10 });
  t.same(await client.call(Configure, {}, 1_000), { events: 0 });
});

test('calls run concurrently and are answered in any order', async (t) => {
  const waiting: (() => void)[] = [];
  const { client } = pair({
    Configure: unary(async ({ config }: { config: string }) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { events: Number(config) };
    }),
  });
  const calls = [1, 2, 3].map((number) => client.call(Configure, { config: String(number) }, 1_000));
  await eventually(() => waiting.length === 3, 'the three calls');
  for (const answer of waiting.reverse()) answer();
  t.same(
    (await Promise.all(calls)).map(({ events }) => events),
    [1, 2, 3],
  );
});

test('refusals keep their code, and failures reach the owner of the server and are INTERNAL to the caller', async (t) => {
  const { client, failures } = pair({
    Configure: unary(async () => {
      throw new RpcRefusal(status.FAILED_PRECONDITION, 'no CPU is free');
    }),
    Shutdown: () => {
      throw new Error('broken');
    },
  });
  await t.rejects(client.call(Configure, {}, 1_000), { code: status.FAILED_PRECONDITION, message: 'no CPU is free' });
  t.equal(await codeOf(client.call(Shutdown, {}, 1_000)), status.INTERNAL);
  t.match(failures, [/broken/]);
  t.equal(await codeOf(client.call(Synchronize, {}, 1_000)), status.UNIMPLEMENTED);
});

test('a call without an answer fails at its time limit, and a late answer is dropped', async (t) => {
  let answer = (): void => undefined;
  const { client, clock } = pair({
    Shutdown: unary(() => new Promise<object>((resolve) => (answer = () => resolve({})))),
    Configure: unary(async () => ({ events: 7 })),
  });
  const call = client.call(Shutdown, {}, 2_000);
  clock.advance(1_999);
  await Promise.resolve();
  clock.advance(1);
  t.equal(await codeOf(call), status.DEADLINE_EXCEEDED);
  answer();
  t.same(await client.call(Configure, {}, 1_000), { events: 7 });
});

test('both ends of a call learn that the connection has ended', async (t) => {
  let [begun, over] = [0, 0];
  const shutdown: RpcHandler<unknown, unknown> = (call) => {
    begun += 1;
    call.onOver(() => (over += 1));
  };
  const { client, server } = pair({ Shutdown: shutdown });
  const call = client.call(Shutdown, {}, 1_000);
  await eventually(() => begun === 1, 'the call');
  server.close();
  client.close();
  t.equal(over, 1);
  t.equal(await codeOf(call), status.UNAVAILABLE);
  t.equal(await codeOf(client.call(Shutdown, {}, 1_000)), status.UNAVAILABLE);
});

test('a call beyond the limit of concurrent calls is refused', async (t) => {
  const { client } = pair({ Shutdown: () => undefined }, 2);
  const calls = [1, 2, 3].map(() => codeOf(client.call(Shutdown, {}, 1_000)));
  t.equal(await calls[2], status.RESOURCE_EXHAUSTED);
  client.close();
  t.same(await Promise.all(calls), [status.UNAVAILABLE, status.UNAVAILABLE, status.RESOURCE_EXHAUSTED]);
});

test('the server refuses requests that break the rules of streams, and serves the requests after them', async (t) => {
  const { server, answers } = exposed({ Shutdown: unary(async () => ({})) });
  server.receive(request(2, 'Shutdown'));
  server.receive(request(5, 'Nothing'));
  server.receive(request(3, 'Shutdown'));
  const streaming = request(7, 'Shutdown');
  streaming.writeUInt8(0x02, 9);
  server.receive(streaming);
  server.receive(encodeMessage({ streamId: 7, type: MESSAGE_TYPE.data, payload: Buffer.from('more') }));
  server.receive(encodeMessage({ streamId: 9, type: MESSAGE_TYPE.request, payload: Buffer.from([0xff, 0xff]) }));
  server.receive(request(11, 'Configure', Buffer.from([0xff])));
  server.receive(request(13, 'Shutdown'));
  await eventually(() => answers.some(({ streamId }) => streamId === 13), 'the answer to the last request');
  t.same(
    answers.map(({ streamId, code }) => [streamId, code]),
    [
      [2, status.INVALID_ARGUMENT],
      [5, status.UNIMPLEMENTED],
      [3, status.INVALID_ARGUMENT],
      [7, status.UNIMPLEMENTED],
      [9, status.INVALID_ARGUMENT],
      [11, status.UNIMPLEMENTED],
      [13, status.OK],
    ],
  );
  t.notMatch(answers[1]?.message, 'Nothing', "the answer does not repeat the peer's name of the method");
});

test('a response to a server, or a request to a client, ends the connection', (t) => {
  const message: Pick<TtrpcMessage, 'streamId'> = { streamId: 1 };
  const { server } = exposed();
  const payload = Buffer.alloc(0);
  t.throws(() => server.receive(encodeMessage({ ...message, type: MESSAGE_TYPE.response, payload })), /type 2/);
  const client = new TtrpcClient(() => undefined, new ManualClock());
  t.throws(() => client.receive(encodeMessage({ ...message, type: MESSAGE_TYPE.request, payload })), /type 1/);
  t.end();
});
