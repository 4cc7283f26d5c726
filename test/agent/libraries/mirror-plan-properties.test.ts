import assert from 'node:assert/strict';
import { posix } from 'node:path';
import fc from 'fast-check';
import { test } from 'tap';
import type { Architecture } from '../../../src/agent/libraries/architecture.js';
import type { HostLibrary } from '../../../src/agent/libraries/inventory.js';
import { planMirror, type ControlLibrary, type MirrorPlan } from '../../../src/agent/libraries/mirror-plan.js';

const NAMES = [
  'libcuda',
  'libnvidia-ml',
  'libnvidia-tls',
  'libnvidia-glcore',
  'libGL',
  'libGLX_nvidia',
  'libEGL',
  'libcuda-origin',
  'libfoo',
];
const VERSIONS = ['1', '1.1', '470.256.02', '580.95.05'];

/** Any library: of any architecture, under any name, with any SONAME, at any place. */
const library: fc.Arbitrary<HostLibrary> = fc
  .record({
    stem: fc.constantFrom(...NAMES),
    version: fc.constantFrom(...VERSIONS),
    soname: fc.constantFrom('major', 'own', 'none', '../escape', 'libcuda.so.1', 'libcuda-origin.so.1'),
    architecture: fc.constantFrom<Architecture>('x86-64', 'i386', 'aarch64', 'arm', 'x32', 'other'),
    needed: fc.array(
      fc.constantFrom('libGLdispatch.so.0', 'libnvidia-glcore.so.580.95.05', 'libnvidia-tls.so.1', 'libc.so.6'),
      { maxLength: 3 },
    ),
    directory: fc.constantFrom('a', 'b', 'c'),
    foundBySoname: fc.boolean(),
  })
  .map(({ stem, version, soname, architecture, needed, directory, foundBySoname }) => {
    const fileName = `${stem}.so.${version}`;
    const name = soname === 'major' ? `${stem}.so.1` : soname === 'own' ? fileName : soname === 'none' ? null : soname;
    return {
      name: foundBySoname && name !== null ? name : fileName,
      fileName,
      path: `/${architecture}/${directory}/${fileName}`,
      identity: '1',
      facts: { architecture, soname: name, needed, notes: [] },
      exports: null,
    };
  });

const CONTROLS: readonly ControlLibrary[] = [
  ['libcuda.so.1', 'libcuda-origin.so.1'],
  ['libnvidia-ml.so.1', 'libnvidia-ml-origin.so.1'],
].map(([soname = '', originName = '']) => ({
  soname,
  originName,
  architecture: 'x86-64',
  fileName: `control-${soname}`,
  path: `/agent/control-${soname}`,
  identity: '1',
  exports: new Set(['cuInit']),
}));

function planOf(libraries: readonly HostLibrary[], controls: readonly ControlLibrary[] | null): MirrorPlan | null {
  const volume = { name: 'nvidia', base: '/x', libraries: NAMES.map((name) => `${name}.so`), binaries: [] };
  const result = planMirror({
    volume,
    inventory: { source: 'ld.so.cache', libraries, binaries: [], unreadable: [] },
    architecture: 'x86-64',
    controls,
    ownFiles: new Map(),
  });
  return result.ok ? result.plan : null;
}

/** The file to which a name of the plan leads through its links; null where it leads nowhere. */
function fileBehind(plan: MirrorPlan, name: string): { path: string } | null {
  const seen = new Set<string>();
  for (let at = name; !seen.has(at);) {
    seen.add(at);
    const step = plan.steps.find((candidate) => candidate.to === at);
    if (step === undefined || step.kind === 'directory') return null;
    if (step.kind !== 'symlink') return step.from;
    at = posix.join(posix.dirname(at), step.target);
  }
  return null;
}

test('a plan makes every name once, after its directories, and every link leads to a file', (t) => {
  fc.assert(
    fc.property(fc.array(library, { maxLength: 25 }), fc.boolean(), (libraries, controlled) => {
      const plan = planOf(libraries, controlled ? CONTROLS : null);
      if (plan === null) return;
      const names = plan.steps.map((step) => step.to);
      assert.equal(new Set(names).size, names.length);
      for (const step of plan.steps) {
        if (step.kind === 'directory') continue;
        assert.match(step.to, /^lib(64)?\/[^/]+$/);
        assert.ok(names.indexOf(posix.dirname(step.to)) < names.indexOf(step.to));
        assert.notEqual(fileBehind(plan, step.to), null, step.to);
      }
    }),
    { numRuns: 2000 },
  );
  t.pass('2000 hosts');
  t.end();
});

test('each directory holds libraries of its own width, and none of another architecture', (t) => {
  fc.assert(
    fc.property(fc.array(library, { maxLength: 25 }), fc.boolean(), (libraries, controlled) => {
      for (const step of planOf(libraries, controlled ? CONTROLS : null)?.steps ?? []) {
        if (step.kind !== 'link') continue;
        const architecture = step.from.path.split('/')[1] ?? '';
        assert.ok(
          (step.to.startsWith('lib64/') ? ['x86-64'] : ['i386', 'x32']).includes(architecture),
          `${step.from.path} as ${step.to}`,
        );
      }
    }),
    { numRuns: 2000 },
  );
  t.pass('2000 hosts');
  t.end();
});

test('in a controlled mirror the names that programs load lead to the control library, never to a driver', (t) => {
  let planned = 0;
  fc.assert(
    fc.property(fc.array(library, { maxLength: 25 }), (libraries) => {
      const plan = planOf(libraries, CONTROLS);
      if (plan === null) return;
      planned += 1;
      for (const name of ['libcuda.so.1', 'libcuda.so'])
        assert.equal(fileBehind(plan, `lib64/${name}`)?.path, '/agent/control-libcuda.so.1');
      const origin = fileBehind(plan, 'lib64/libcuda-origin.so.1');
      assert.ok(
        libraries.some((candidate) => candidate.path === origin?.path && candidate.facts.soname === 'libcuda.so.1'),
      );
      assert.equal(fileBehind(plan, 'lib/libcuda.so.1'), null);
    }),
    { numRuns: 3000 },
  );
  t.ok(planned > 100, `${planned} hosts with a driver`);
  t.end();
});

test('the same host gives the same plan', (t) => {
  fc.assert(
    fc.property(fc.array(library, { maxLength: 25 }), (libraries) =>
      assert.deepEqual(planOf([...libraries], CONTROLS), planOf(libraries, CONTROLS)),
    ),
    { numRuns: 300 },
  );
  t.pass('300 hosts');
  t.end();
});
