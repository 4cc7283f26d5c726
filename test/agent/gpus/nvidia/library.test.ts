import { existsSync } from 'node:fs';
import { test } from 'tap';
import { Library, type FunctionCall } from '../../../../src/agent/gpus/nvidia/library.js';
import { packageFile } from '../../../../src/host/package-files.js';
import { noCompiler, oddLibrary } from './odd-library.js';

const notBuilt = existsSync(packageFile('native/build/libcall-list.so')) ? false : 'npm run native';

const init: FunctionCall = { name: 'nvmlInit_v2', parameters: [], args: [] };
const nameOf = (gpu: bigint, into: Buffer): FunctionCall => ({
  name: 'nvmlDeviceGetName',
  parameters: ['handle', 'memory', 'uint'],
  args: [gpu, into, into.length],
});
const handleOf = (index: number, into: Buffer): FunctionCall => ({
  name: 'nvmlDeviceGetHandleByIndex_v2',
  parameters: ['uint', 'memory'],
  args: [index, into],
});

test('several functions are called in order on one thread', { skip: noCompiler || notBuilt }, async (t) => {
  const library = Library.open([oddLibrary]);
  const count = Buffer.alloc(4);
  const handles = [Buffer.alloc(8), Buffer.alloc(8)] as const;
  const found = await library.callAll([
    init,
    { name: 'nvmlDeviceGetCount_v2', parameters: ['memory'], args: [count] },
    handleOf(0, handles[0]),
    handleOf(1, handles[1]),
    handleOf(77, Buffer.alloc(8)),
  ]);
  t.same(found?.slice(0, 4), [0, 0, 0, 0]);
  t.not(found?.[4], 0, 'each function has its own result');
  t.ok(count.readUInt32LE() >= 2);
  const texts = handles.map(() => Buffer.alloc(96));
  const alone = Buffer.alloc(96);
  t.same(
    await library.callAll(handles.map((handle, at) => nameOf(handle.readBigUInt64LE(), texts[at] as Buffer))),
    [0, 0],
  );
  const { name, parameters, args } = nameOf(handles[1].readBigUInt64LE(), alone);
  t.equal(await library.call(name, parameters, args), 0);
  t.same(texts[1], alone, 'the answer is that of a single call');
});

test('an agent that was installed without the library of lists makes single calls', { skip: noCompiler }, async (t) => {
  const library = Library.open([oddLibrary], '/nonexistent/libcall-list.so');
  t.equal(await library.callAll([init]), null);
  t.equal(await library.call(init.name, init.parameters, init.args), 0);
});
