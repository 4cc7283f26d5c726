import { readdirSync, readFileSync } from 'node:fs';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { packageDefinition } from '../../src/rpc/package-definition.js';

type Message = MessageTypeDefinition<object, object>;

const PROTO = packageFile('proto/');
/** The options for which `npm run proto` generates types. */
const OPTIONS = { keepCase: true, longs: String, enums: String, defaults: true };
/** One field of each kind that conversions treat in their own way. */
const KINDS = `syntax = "proto3";
package kinds;
enum Colour { NONE = 0; RED = 7; }
message Inner { string text = 1; }
message Kinds {
  int64 big = 1; uint64 huge = 2; bytes raw = 3; Colour colour = 4; repeated Inner inner = 5; map<string, int64> sizes = 6;
  oneof choice { string left_side = 7; bool right_side = 8; }
  optional int32 maybe = 9; double ratio = 10;
}`;
const VALUES = {
  big: '-9007199254740993',
  huge: '18446744073709551615',
  raw: Buffer.from([0, 255]),
  colour: 'RED',
  inner: [{ text: 'a' }, {}],
  sizes: { one: '1' },
  left_side: 'x',
  maybe: 0,
  ratio: 0.5,
};

function isMessage(definition: PackageDefinition[string]): definition is Message {
  return 'serialize' in definition;
}

/** What proto-loader reads in `text`, without enumerations, which have no code. */
function expected(file: string): PackageDefinition {
  const all = Object.entries(loadSync(file, { ...OPTIONS, includeDirs: [PROTO] }));
  return Object.fromEntries(all.filter(([, definition]) => !('format' in definition) || 'serialize' in definition));
}

for (const file of readdirSync(PROTO).filter((name) => name.endsWith('.proto')))
  test(`${file} is read as proto-loader reads it`, (t) => {
    const [ours, theirs] = [packageDefinition(readFileSync(`${PROTO}${file}`, 'utf8')), expected(file)];
    t.same(Object.keys(ours).sort(), Object.keys(theirs).sort());
    for (const [name, definition] of Object.entries(theirs)) {
      const own = ours[name];
      if (isMessage(definition)) {
        t.same((own as Message).deserialize(Buffer.alloc(0)), definition.deserialize(Buffer.alloc(0)), name);
        continue;
      }
      for (const [name, method] of Object.entries(definition as ServiceDefinition)) {
        const { path, requestStream, responseStream, originalName } = method;
        t.match((own as ServiceDefinition)[name], { path, requestStream, responseStream, originalName }, path);
      }
    }
    t.end();
  });

test('every kind of field is converted as proto-loader converts it', (t) => {
  const file = `${t.testdir({ 'kinds.proto': KINDS })}/kinds.proto`;
  const [ours, theirs] = [packageDefinition(KINDS), expected(file)].map((all) => all['kinds.Kinds'] as Message);
  const bytes = theirs?.serialize(VALUES) ?? Buffer.alloc(0);
  t.same(ours?.serialize(VALUES), bytes);
  t.same(ours?.deserialize(bytes), theirs?.deserialize(bytes));
  t.match(ours?.deserialize(bytes), {
    big: VALUES.big,
    huge: VALUES.huge,
    colour: 'RED',
    inner: [{ text: 'a' }, { text: '' }],
  });
  t.end();
});
