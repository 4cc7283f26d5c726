import { readdirSync } from 'node:fs';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import protobuf from 'protobufjs';
import { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import * as protocols from '../../src/rpc/proto.js';

/** The options for which `npm run build` generates types. */
const OPTIONS = { keepCase: true, longs: String, enums: String, defaults: true };
const VALUES: Readonly<Record<string, unknown>> = { string: 'text', bytes: Buffer.from([1, 2]), bool: true };

/** A message of this type with a value in each field; of a type that contains itself, to this depth. */
function exampleOf(type: protobuf.Type, depth = 2): object {
  const valueOf = ({ type: name, resolvedType }: protobuf.Field): unknown => {
    if (resolvedType instanceof protobuf.Type) return depth === 0 ? {} : exampleOf(resolvedType, depth - 1);
    if (resolvedType instanceof protobuf.Enum) return Object.keys(resolvedType.values).at(-1);
    return VALUES[name] ?? (name.endsWith('64') ? '1234567890123' : 7);
  };
  return Object.fromEntries(
    type.fieldsArray.map((field) => {
      const value = valueOf(field.resolve());
      return [field.name, field.map ? { key: value } : field.repeated ? [value, value] : value];
    }),
  );
}

/** All messages below this object, by full name. */
function messagesOf(declared: object, prefix = ''): [string, MessageTypeDefinition<object, object>][] {
  return Object.entries(declared).flatMap(([name, member]: [string, object | undefined]) => {
    if (member === undefined) return [];
    if ('serialize' in member) return [[`${prefix}${name}`, member as MessageTypeDefinition<object, object>]];
    return typeof member === 'object' ? messagesOf(member, `${prefix}${name}.`) : [];
  });
}

test('messages are encoded and decoded as the files of proto/ say', async (t) => {
  const found = new Map(Object.values(protocols).flatMap((declared) => messagesOf(declared())));
  for (const file of readdirSync(packageFile('proto')).filter((name) => name.endsWith('.proto'))) {
    const root = new protobuf.Root().loadSync(packageFile(`proto/${file}`), OPTIONS).resolveAll();
    for (const [name, expected] of Object.entries(loadSync(packageFile(`proto/${file}`), OPTIONS))) {
      if (!('serialize' in expected) || root.lookupType(name).parent instanceof protobuf.Type) continue;
      const reference = expected as MessageTypeDefinition<object, object>;
      const message = found.get(name);
      if (message === undefined) throw new Error(`${file}: ${name} is not declared`);
      const example = exampleOf(root.lookupType(name));
      const bytes = reference.serialize(example);
      t.strictSame(message.serialize(example), bytes, name);
      t.same(message.deserialize(bytes), reference.deserialize(bytes), name);
      t.same(message.deserialize(Buffer.alloc(0)), reference.deserialize(Buffer.alloc(0)), `${name}, empty`);
    }
  }
  t.ok(found.size > 60, `${found.size} messages`);
});
