// npm run build: compiles all TypeScript and checks its types with TypeScript's native compiler, as far as the sources have
// changed. It needs a fifth of the time of the package `typescript`, which stays for the linter, and writes the same code.
//
//     node scripts/compile.mjs [OPTION OF tsc...]
import { transform } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateProto } from './generate-proto.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMPILER = join(ROOT, 'node_modules/typescript-native/bin/tsc');

/** What tsconfig.json includes. */
export const FOLDERS = ['src', 'test', 'bench', 'examples'];

/** Compiles and checks what has changed, and prints the errors; whether there were none. */
export async function compile(options = ['--build']) {
  await generateProto();
  return spawnSync(process.execPath, [COMPILER, ...options], { cwd: ROOT, stdio: 'inherit' }).status === 0;
}

/**
 * Writes the code of the sources that are newer than their code, in milliseconds and without checking types: for a result
 * of a test before `compile` has looked at everything. A source that cannot be parsed is an error that names the line.
 */
export async function transpileChanged() {
  await generateProto();
  const changed = FOLDERS.flatMap(sourcesBelow).filter(isNewer);
  if (changed.length === 0) return changed;
  const tsconfigRaw = readFileSync(join(ROOT, 'tsconfig.json'), 'utf8');
  await Promise.all(changed.map((source) => transpile(source, tsconfigRaw)));
  return changed;
}

async function transpile(source, tsconfigRaw) {
  const code = codeOf(source);
  const directory = dirname(join(ROOT, code));
  const { code: text, map } = await transform(readFileSync(join(ROOT, source), 'utf8'), {
    loader: 'ts',
    format: 'esm',
    target: 'es2022',
    sourcemap: true,
    sourcefile: relative(directory, join(ROOT, source)),
    sourcesContent: false,
    tsconfigRaw,
    logLevel: 'silent',
  });
  mkdirSync(directory, { recursive: true });
  replaceFile(`${code}.map`, map);
  replaceFile(code, `${text}//# sourceMappingURL=${basename(code)}.map\n`);
}

/** Another run may load the file at this moment: it finds the old text or the new one. */
function replaceFile(path, text) {
  const file = join(ROOT, path);
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

/** The file that a source is compiled to, relative to the project's folder. */
const codeOf = (source) => join('dist', source.replace(/\.ts$/u, '.js'));

const sourcesBelow = (folder) =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .map((file) => join(folder, file));

function isNewer(source) {
  const code = statSync(join(ROOT, codeOf(source)), { throwIfNoEntry: false });
  return code === undefined || statSync(join(ROOT, source)).mtimeMs > code.mtimeMs;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = process.argv.slice(2);
  process.exitCode = (await compile(options.length > 0 ? options : undefined)) ? 0 : 1;
}
