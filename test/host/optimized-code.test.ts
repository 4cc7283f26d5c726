import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'tap';

const run = promisify(execFile);
const MODULE = new URL('../../src/host/optimized-code.js', import.meta.url).href;

/** Calls a small and a large function until V8 has optimized what it will; the names of those that it did. */
async function optimized(before: string): Promise<Set<string>> {
  const program = `
    ${before}
    const sum = (name, terms) =>
      new Function('return function ' + name + '(a) { let b = a;' + 'b = (b * 31 + a) % 1000003;'.repeat(terms) + 'return b; }')();
    const [small, large] = [sum('small', 2), sum('large', 100)];
    let total = 0;
    for (let call = 0; call < 200_000; call += 1) total += small(call) + large(call);`;
  // Without the compiler's thread, nothing depends on when it is done.
  const flags = ['--trace-opt', '--no-concurrent-recompilation', '--input-type=module'];
  const { stdout } = await run(process.execPath, [...flags, '--eval', program], { env: {}, maxBuffer: 2 ** 24 });
  const done = stdout.matchAll(/completed compiling \S+ <JSFunction (small|large) .*TURBOFAN/g);
  return new Set([...done].map(([, name = '']) => name));
}

test('after the start, only small functions are optimized', async (t) => {
  t.same(await optimized(''), new Set(['small', 'large']), 'by default both');
  const after = `import { optimizeSmallFunctionsOnly } from ${JSON.stringify(MODULE)}; optimizeSmallFunctionsOnly();`;
  t.same(await optimized(after), new Set(['small']));
});
