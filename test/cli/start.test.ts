import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const CLI = fileURLToPath(new URL('../../src/cli/', import.meta.url));

/** Packages of the older module system that are loaded with a module. */
function loadedWith(file: string): string[] {
  const program = `
    const { createRequire } = await import('node:module');
    await import(${JSON.stringify(`${CLI}${file}`)});
    const files = Object.keys(createRequire(import.meta.url).cache);
    console.log(JSON.stringify(files.map((file) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(file)?.[1] ?? '')));`;
  const { stdout, status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    cwd: CLI,
  });
  if (status !== 0) throw new Error(stderr);
  return [...new Set(JSON.parse(stdout) as string[])];
}

test('commands load gRPC only when they call the agent', (t) => {
  t.ok(loadedWith('node-client.js').includes('@grpc/grpc-js'), 'the check detects a loaded module');
  for (const file of ['graph.js', 'usage.js', 'top.js', 'events.js'])
    t.notOk(loadedWith(file).includes('@grpc/grpc-js'), file);
  t.end();
});
