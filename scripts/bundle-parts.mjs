// Parts of the bundles that scripts make: how esbuild is called, and what is said about the packages in a bundle.
import { build } from 'esbuild';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Loads a compiled library, which cannot be part of a JavaScript file. */
export const KOFFI = 'koffi';

/** grpc-js needs proto-loader only for channelz and load reports, services that nothing here offers. */
const WITHOUT_UNUSED_SERVICES = {
  name: 'without-unused-services',
  setup({ onResolve }) {
    onResolve({ filter: /^@grpc\/proto-loader$/ }, ({ path, importer }) =>
      importer.includes('/node_modules/@grpc/grpc-js/') ? { path, external: true } : undefined,
    );
  },
};

/**
 * Requires node:http instead of importing it. Of a module of its own that is imported, Node reads all exports: from
 * Node 22 on, three of node:http load a whole HTTP client. Here are those that the commands and their packages use;
 * esbuild refuses to bundle a file that imports another one by name.
 */
const REQUIRED_HTTP = {
  name: 'required-http',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:node:)?http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'node:http', namespace: 'required' } : undefined,
    );
    onLoad({ filter: /^node:http$/, namespace: 'required' }, () => ({
      contents: `const http = require('node:http');
        export default http;
        export const { Agent, IncomingMessage, createServer, request } = http;`,
    }));
  },
};

/**
 * Options of esbuild that put programs of dist/src, and everything they import, into a few files below
 * TARGET/dist/src. The same sources give the same bytes: nothing in them depends on the time, the machine or the path.
 */
export function bundleOptions(target, entryPoints, plugins = []) {
  return {
    absWorkingDir: ROOT,
    entryPoints,
    outbase: 'dist/src',
    outdir: join(target, 'dist/src'),
    splitting: true,
    // As deep as the files that they are made of, which find others from where they are.
    chunkNames: 'cli/[name]-[hash]',
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    // The last two are accelerators that their users do without; nothing here speaks SSH.
    external: [KOFFI, 'cpu-features', '*.node'],
    plugins: [WITHOUT_UNUSED_SERVICES, REQUIRED_HTTP, ...plugins],
    // Packages of the older module system ask for these.
    banner: {
      js: [
        "import { createRequire as bundleRequire } from 'node:module';",
        "import { fileURLToPath as bundlePath } from 'node:url';",
        'const require = bundleRequire(import.meta.url);',
        'const __filename = bundlePath(import.meta.url);',
        "const __dirname = bundlePath(new URL('.', import.meta.url));",
      ].join('\n'),
    },
    // Names stay as they are, for stacks that can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  };
}

/**
 * Bundles the commands, and the programs that they start, into TARGET/dist/src; what esbuild says of each bundle.
 * OPTIONS are added to those of `bundleOptions`.
 */
export async function bundleCommands(target, options = {}) {
  // The agent shares no file with other commands: the code that it loads at its start is in a few files then, instead
  // of one for each set of commands that share code.
  const agent = 'agent-program.js';
  const others = [
    'dist/src/cli/main.js',
    'dist/src/cli/kubectl-gpu.js',
    'dist/src/cli/kubectl-complete-gpu.js',
    // A program that `doctor` starts.
    'dist/src/agent/doctor/interposition-probe.js',
  ];
  return [
    await build({ ...bundleOptions(target, [`dist/src/cli/${agent}`]), ...options }),
    await build({ ...bundleOptions(target, others, [leftOutside(agent)]), ...options }),
  ];
}

/** Leaves imports of a bundled program as they are written: it lies beside. */
function leftOutside(program) {
  const setup = ({ onResolve }) =>
    onResolve({ filter: /^\.\// }, ({ path }) => (path === `./${program}` ? { path, external: true } : undefined));
  return { name: program, setup };
}

/** Folders of the packages that the inputs of a bundle belong to. */
export function packagesIn({ inputs }) {
  const folders = Object.keys(inputs).flatMap(
    (input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? [],
  );
  return [...new Set(folders)].sort();
}

/** What ships, by package: version, licence, and the licence's text where the package has one. */
export async function licences(folders) {
  const sections = await Promise.all(
    folders.map(async (folder) => {
      const at = join(ROOT, folder);
      const { name, version, license } = JSON.parse(await readFile(join(at, 'package.json'), 'utf8'));
      const file = (await readdir(at)).find((entry) => /^licen[cs]e/iu.test(entry));
      const text = file === undefined ? '' : `\n${(await readFile(join(at, file), 'utf8')).trim()}\n`;
      return { title: `${name} ${version}`, text: `## ${name} ${version}: ${license ?? 'see below'}\n${text}` };
    }),
  );
  sections.sort((a, b) => (a.title < b.title ? -1 : 1));
  return `# Packages in this bundle\n\n${sections.map(({ text }) => text).join('\n')}`;
}
