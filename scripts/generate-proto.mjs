// Writes src/rpc/gen from proto/ before a compilation: the types of messages, by the options of src/rpc/proto.ts, and for each
// file what it declares.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = join(root, 'src/rpc/gen');

/** A protocol without services declares what only services use, which the compiler refuses. */
const withoutUnused = (text) =>
  /SubtypeConstructor<typeof/.test(text)
    ? text
    : text
        .replace(/^type SubtypeConstructor<[^]*?^};\n\n/m, '')
        .replace(/^import type \* as grpc from '@grpc\/grpc-js';?\n/m, (line) => (/\bgrpc\./.test(text) ? line : ''));

/** A module with what a file of proto/ declares, as protobufjs takes it. A function, so that only what is used is made. */
async function declarationsOf(file) {
  const declared = new protobuf.Root();
  await declared.load(join(root, 'proto', file), { keepCase: true });
  return [
    `// Original file: proto/${file}`,
    '',
    `export const declarations = (): object => (${JSON.stringify(declared.resolveAll().toJSON(), null, 2)});`,
    '',
  ].join('\n');
}

const filesBelow = (directory) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();

const newest = (files) => Math.max(...files.map((file) => statSync(file).mtimeMs));

/** Whether proto/ or this program is newer than what was written. */
function isStale(protos) {
  const written = statSync(target, { throwIfNoEntry: false });
  const sources = [...protos.map((name) => join(root, 'proto', name)), fileURLToPath(import.meta.url)];
  return written === undefined || written.mtimeMs < newest(sources);
}

/** Writes src/rpc/gen, in a second, unless it is newer than what it is made of. */
export async function generateProto() {
  const protos = readdirSync(join(root, 'proto'))
    .filter((name) => name.endsWith('.proto'))
    .sort();
  if (!isStale(protos)) return;
  const fresh = mkdtempSync(join(tmpdir(), 'proto-types-'));
  try {
    await write(protos, fresh);
    rmSync(target, { recursive: true, force: true });
    cpSync(fresh, target, { recursive: true });
    // The folder's time says when all of it was there.
    utimesSync(target, new Date(), new Date());
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

async function write(protos, fresh) {
  execFileSync(
    join(root, 'node_modules/.bin/proto-loader-gen-types'),
    [
      '-I',
      join(root, 'proto'),
      '--keepCase',
      '--longs=String',
      '--enums=String',
      '--defaults',
      '--grpcLib=@grpc/grpc-js',
      '--importFileExtension=.js',
      '--outDir',
      fresh,
      ...protos,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  // The generator writes where its input lay on this machine; the output must be the same on every machine.
  for (const name of filesBelow(fresh)) {
    const file = join(fresh, name);
    const text = readFileSync(file, 'utf8').replaceAll(root, '');
    writeFileSync(file, withoutUnused(text));
  }
  for (const file of protos)
    writeFileSync(join(fresh, `${file.replace(/\.proto$/, '')}.declarations.ts`), await declarationsOf(file));
}
