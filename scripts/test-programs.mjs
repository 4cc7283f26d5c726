// The commands as tests start them: each in a few files, as in the image, because a start from the hundreds of files
// that the compiler writes takes 0.6 s more CPU time, and the tests start them hundreds of times.
//
//     node scripts/test-programs.mjs PROGRAM [ARGUMENT...]
//
// builds them if they are older than what they are made of, and runs a program that has them in its environment.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleCommands, ROOT } from './bundle-parts.mjs';

/** Read by PROGRAMS. */
const VARIABLE = 'GPU_MANAGER_TEST_PROGRAMS';
const PROGRAMS = 'dist/test/harness/programs.js';
const TARGET = join(ROOT, 'build/test-programs');
/** As new as the newest file that the commands in TARGET are made of. */
const STAMP = join(TARGET, 'made-of');
/** What the commands read from their package, and the package with compiled code. */
const BESIDE = ['package.json', 'etc', 'src', 'native', 'node_modules'];

/** Variables for the compiled test files that are named: where the commands are, if one of the files starts them. */
export async function testPrograms(files) {
  const newest = newestOf(sources());
  const current = existsSync(STAMP) && statSync(STAMP).mtimeMs >= newest;
  if (!current) {
    if (!(await startPrograms(files))) return {};
    rmSync(TARGET, { recursive: true, force: true });
    mkdirSync(TARGET, { recursive: true });
    // Lines stay as they are, for stacks that can be read.
    await bundleCommands(TARGET, { minifyWhitespace: false, minifySyntax: false });
    for (const name of BESIDE) symlinkSync(join(ROOT, name), join(TARGET, name));
    writeFileSync(STAMP, '');
    utimesSync(STAMP, new Date(), new Date(Math.ceil(newest)));
  }
  return { [VARIABLE]: join(TARGET, 'dist/src/cli') };
}

/** Compiled code, the packages, and the scripts that bundle them. */
function sources() {
  const compiled = readdirSync(join(ROOT, 'dist/src'), { recursive: true }).filter((file) => file.endsWith('.js'));
  return [
    ...compiled.map((file) => join('dist/src', file)),
    'node_modules/.package-lock.json',
    'scripts/bundle-parts.mjs',
    'scripts/test-programs.mjs',
  ];
}

const newestOf = (files) => Math.max(...files.map((file) => statSync(join(ROOT, file)).mtimeMs));

/** Whether one of these files loads what says where the commands are. */
async function startPrograms(entryPoints) {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints,
    outdir: 'build',
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'error',
  });
  return PROGRAMS in metafile.inputs;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [program, ...args] = process.argv.slice(2);
  const env = { ...process.env, ...(await testPrograms([PROGRAMS])) };
  const { status } = spawnSync(process.execPath, [program, ...args], { stdio: 'inherit', env });
  process.exitCode = status ?? 1;
}
