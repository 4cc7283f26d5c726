import { test } from 'tap';
import type { Architecture } from '../../../src/agent/libraries/architecture.js';
import type { HostFile, HostInventory, HostLibrary } from '../../../src/agent/libraries/inventory.js';
import {
  planMirror,
  type ControlLibrary,
  type MirrorPlan,
  type MirrorRequest,
  type MirrorStep,
} from '../../../src/agent/libraries/mirror-plan.js';
import type { VolumeDescription } from '../../../src/agent/libraries/volume-config.js';

interface LibrarySketch {
  readonly soname?: string;
  readonly needed?: readonly string[];
  readonly architecture?: Architecture;
  /** Name under which it is found; by default the SONAME, or else the name of the file. */
  readonly name?: string;
  readonly directory?: string;
  readonly minimumLinux?: readonly [number, number, number];
}

function library(fileName: string, sketch: LibrarySketch = {}): HostLibrary {
  const { soname = null, needed = [], architecture = 'x86-64', minimumLinux } = sketch;
  const description = Buffer.alloc(16);
  (minimumLinux ?? []).forEach((part, index) => description.writeUInt32LE(part, 4 + index * 4));
  return {
    name: sketch.name ?? soname ?? fileName,
    fileName,
    path: `/host/${sketch.directory ?? architecture}/${fileName}`,
    identity: `100:${fileName}`,
    facts: {
      architecture,
      soname,
      needed,
      notes: minimumLinux === undefined ? [] : [{ owner: 'GNU', type: 1, description }],
    },
    exports: null,
  };
}

const CUDA = library('libcuda.so.535.54.03', { soname: 'libcuda.so.1' });
const NVML = library('libnvidia-ml.so.535.54.03', { soname: 'libnvidia-ml.so.1' });

const control = (
  soname: string,
  originName: string,
  fileName: string,
  architecture: Architecture = 'x86-64',
): ControlLibrary => ({
  soname,
  originName,
  fileName,
  architecture,
  path: `/agent/${fileName}`,
  identity: fileName,
  exports: new Set(['cuInit', 'cuGetProcAddress_v2']),
});

const CONTROLS = [
  control('libcuda.so.1', 'libcuda-origin.so.1', 'libcuda-control.so'),
  control('libnvidia-ml.so.1', 'libnvidia-ml-origin.so.1', 'libnvml-control.so'),
];

const inventoryOf = (libraries: readonly HostLibrary[], binaries: HostInventory['binaries'] = []): HostInventory => ({
  source: 'ld.so.cache',
  libraries,
  binaries,
  unreadable: [],
});

const volume = (libraries: readonly string[], binaries: readonly string[] = []): VolumeDescription => ({
  name: 'nvidia',
  base: '/x',
  libraries,
  binaries,
});

const DRIVER = volume(['libcuda.so', 'libnvidia-ml.so', 'libGL', 'libEGL', 'libnvidia-tls.so']);

function plan(libraries: readonly HostLibrary[], request: Partial<MirrorRequest> = {}): MirrorPlan {
  const result = planMirror({
    volume: DRIVER,
    inventory: inventoryOf(libraries),
    architecture: 'x86-64',
    controls: null,
    ownFiles: new Map(),
    ...request,
  });
  if (!result.ok) throw new Error(result.reason);
  return result.plan;
}

const show = (step: MirrorStep): string => {
  switch (step.kind) {
    case 'directory':
      return `${step.to}/`;
    case 'symlink':
      return `${step.to} -> ${step.target}`;
    case 'link':
      return `${step.to} = ${step.from.path}`;
    case 'copy':
      return `${step.to} < ${step.from.path}`;
  }
};

test('the original libraries have their own name, their SONAME and the name without a version', (t) => {
  t.same(plan([CUDA]).steps.map(show), [
    'lib64/',
    'lib64/libcuda.so.535.54.03 = /host/x86-64/libcuda.so.535.54.03',
    'lib64/libcuda.so.1 -> libcuda.so.535.54.03',
    'lib64/libcuda.so -> libcuda.so.535.54.03',
  ]);
  t.end();
});

test('control libraries take the names of the driver libraries, and those get the names that the control libraries load', (t) => {
  t.same(plan([CUDA, NVML], { controls: CONTROLS }).steps.map(show), [
    'lib64/',
    'lib64/libcuda.so.535.54.03 = /host/x86-64/libcuda.so.535.54.03',
    'lib64/libcuda-origin.so.1 -> libcuda.so.535.54.03',
    'lib64/libcuda.so.1 < /agent/libcuda-control.so',
    'lib64/libcuda.so -> libcuda.so.1',
    'lib64/libnvidia-ml.so.535.54.03 = /host/x86-64/libnvidia-ml.so.535.54.03',
    'lib64/libnvidia-ml-origin.so.1 -> libnvidia-ml.so.535.54.03',
    'lib64/libnvidia-ml.so.1 < /agent/libnvml-control.so',
    'lib64/libnvidia-ml.so -> libnvidia-ml.so.1',
  ]);
  t.end();
});

test('a driver library whose file has the name of its SONAME is kept under the original name only', (t) => {
  const unversioned = library('libcuda.so.1', { soname: 'libcuda.so.1' });
  const result = plan([unversioned], { controls: CONTROLS });
  t.same(result.steps.map(show), [
    'lib64/',
    'lib64/libcuda-origin.so.1 = /host/x86-64/libcuda.so.1',
    'lib64/libcuda.so.1 < /agent/libcuda-control.so',
    'lib64/libcuda.so -> libcuda.so.1',
  ]);
  t.equal(result.driverVersion, null);
  t.end();
});

test('the 32-bit directory holds no 64-bit library, and no driver library without its control library', (t) => {
  const narrow = library('libcuda.so.535.54.03', { soname: 'libcuda.so.1', architecture: 'i386' });
  const gl = library('libGLdispatch.so.0.0.0', { soname: 'libGLdispatch.so.0', architecture: 'i386' });
  const shared = plan([CUDA, narrow, gl], { controls: CONTROLS, volume: volume(['libcuda.so', 'libGLdispatch.so']) });
  t.same(
    shared.steps.map(show).filter((step) => step.startsWith('lib/')),
    [
      'lib/',
      'lib/libGLdispatch.so.0.0.0 = /host/i386/libGLdispatch.so.0.0.0',
      'lib/libGLdispatch.so.0 -> libGLdispatch.so.0.0.0',
      'lib/libGLdispatch.so -> libGLdispatch.so.0.0.0',
    ],
  );
  t.match(shared.leftOut, [{ path: narrow.path, reason: /no i386 control library/ }]);

  const origin = plan([CUDA, narrow]);
  t.same(
    origin.steps.map(show).filter((step) => step.startsWith('lib/')),
    [
      'lib/',
      `lib/libcuda.so.535.54.03 = ${narrow.path}`,
      'lib/libcuda.so.1 -> libcuda.so.535.54.03',
      'lib/libcuda.so -> libcuda.so.535.54.03',
    ],
  );
  t.end();
});

test('a host without libcuda is refused, and so is a shared mirror without its control library', (t) => {
  const request = {
    volume: DRIVER,
    inventory: inventoryOf([NVML]),
    architecture: 'x86-64',
    controls: null,
    ownFiles: new Map(),
  } as const;
  t.match(planMirror(request), {
    ok: false,
    code: 'no-libcuda',
    reason: /no libcuda\.so\.1 for x86-64 in the host's ld\.so\.cache: is the NVIDIA driver installed/,
  });
  const onlyNarrow = inventoryOf([library('libcuda.so.535.54.03', { soname: 'libcuda.so.1', architecture: 'i386' })]);
  t.match(planMirror({ ...request, inventory: onlyNarrow }), { ok: false, code: 'no-libcuda' });
  t.match(planMirror({ ...request, inventory: inventoryOf([CUDA]), controls: [] }), {
    ok: false,
    code: 'no-control-library',
  });
  const foreign = [control('libcuda.so.1', 'libcuda-origin.so.1', 'libcuda-control.so', 'aarch64')];
  t.match(planMirror({ ...request, inventory: inventoryOf([CUDA]), controls: foreign }), {
    ok: false,
    code: 'no-control-library',
  });
  t.end();
});

test('a volume that does not list libcuda needs no libcuda', (t) => {
  const result = plan([library('libfoo.so.2', { soname: 'libfoo.so.2' })], { volume: volume(['libfoo.so']) });
  t.match(result, { driverVersion: null, version: /^unknown-/ });
  t.end();
});

test('the missing libraries are exactly those that volume.conf lists and the host lacks', (t) => {
  const result = plan([CUDA], { volume: volume(['libcuda.so', 'libnvidia-nvvm.so'], ['nvidia-smi']) });
  t.same(result.missing, ['libnvidia-nvvm.so', 'nvidia-smi']);
  t.end();
});

test('GL libraries of other vendors and the old variant of libnvidia-tls are left out with the reason', (t) => {
  const mesa = library('libEGL.so.1.0.0', { soname: 'libEGL.so.1', needed: ['libgbm.so.1'], directory: 'mesa' });
  const glvnd = library('libEGL.so.1.1.0', { soname: 'libEGL.so.1', needed: ['libGLdispatch.so.0'] });
  const oldTls = library('libnvidia-tls.so.535.54.03', {
    soname: 'libnvidia-tls.so.535.54.03',
    minimumLinux: [2, 2, 5],
  });
  const tls = library('libnvidia-tls.so.535.54.03', {
    soname: 'libnvidia-tls.so.535.54.03',
    minimumLinux: [2, 3, 99],
    directory: 'tls',
  });
  const result = plan([CUDA, mesa, glvnd, oldTls, tls]);
  const taken = result.steps.flatMap((step) => (step.kind === 'link' ? [step.from.path] : []));
  t.same(taken, [CUDA.path, glvnd.path, tls.path]);
  t.match(result.leftOut, [
    { path: mesa.path, reason: /another GL implementation/ },
    { path: oldTls.path, reason: /variant for kernels before 2\.3\.99/ },
  ]);
  t.end();
});

test('a libnvidia-tls without a kernel version note is mirrored', (t) => {
  const tls = library('libnvidia-tls.so.580.95.05', { soname: 'libnvidia-tls.so.580.95.05' });
  t.ok(plan([CUDA, tls]).steps.some((step) => step.to === 'lib64/libnvidia-tls.so.580.95.05'));
  t.end();
});

test('libraries of the same driver that a listed library needs are mirrored, with those that they need', (t) => {
  const eglcore = library('libnvidia-eglcore.so.580.95.05', {
    needed: ['libnvidia-gpucomp.so.580.95.05', 'libc.so.6'],
  });
  const gpucomp = library('libnvidia-gpucomp.so.580.95.05', { needed: ['libnvidia-deep.so.1'] });
  const deep = library('libnvidia-deep.so.580.95.05', { soname: 'libnvidia-deep.so.1' });
  const libc = library('libc.so.6');
  const result = plan([CUDA, eglcore, gpucomp, deep, libc], { volume: volume(['libcuda.so', 'libnvidia-eglcore.so']) });
  const reasons = Object.fromEntries(
    result.steps.flatMap((step) => (step.kind === 'link' ? [[step.from.fileName, step.reason]] : [])),
  );
  t.match(reasons, {
    [gpucomp.fileName]: `${eglcore.fileName} needs it`,
    [deep.fileName]: `${gpucomp.fileName} needs it`,
  });
  t.notOk('libc.so.6' in reasons);
  t.end();
});

test('of two libraries with one name, the one that programs load is mirrored', (t) => {
  const stale = library('libcuda.so.470.1', { soname: 'libcuda.so.1', name: 'libcuda.so.470.1' });
  const result = plan([stale, CUDA]);
  t.equal(result.driverVersion, '535.54.03');
  t.match(result.leftOut, [{ path: stale.path, reason: /same name and comes first/ }]);
  t.end();
});

test('a file of an earlier driver is skipped and logged', (t) => {
  const stale = library('libnvidia-tls.so.470.1', { soname: 'libnvidia-tls.so.470.1' });
  const tls = library('libnvidia-tls.so.535.54.03', { soname: 'libnvidia-tls.so.535.54.03' });
  const result = plan([CUDA, stale, tls]);
  t.match(result.leftOut, [{ path: stale.path, reason: /left over from another driver, 535\.54\.03 is in use/ }]);
  t.end();
});

test('a SONAME that is not a file name does not lead out of the mirror', (t) => {
  for (const soname of ['../../etc/passwd', '..', '', 'a/b']) {
    const result = plan([CUDA, { ...library('libGL-evil.so', { soname }), name: 'libGL-evil.so' }]);
    t.match(result.leftOut, [{ reason: /not a file name/ }], soname);
    t.notOk(result.steps.some((step) => step.to.includes('..')));
  }
  t.end();
});

test('programs and the files of this project are where volume.conf places them', (t) => {
  const file = (fileName: string): HostFile => ({ fileName, path: `/agent/${fileName}`, identity: fileName });
  const ownFiles = new Map([
    ['gpu-client', file('gpu-client')],
    ['libcuda-control.so', file('libcuda-control.so')],
  ]);
  const smi = { name: 'nvidia-smi', ...file('nvidia-smi.real') };
  const result = plan([CUDA], {
    volume: volume(['libcuda.so', 'libcuda-control.so'], ['nvidia-smi', 'gpu-client']),
    inventory: inventoryOf([CUDA], [smi]),
    controls: CONTROLS,
    ownFiles,
  });
  t.same(result.missing, []);
  t.same(result.steps.map(show).slice(5), [
    'lib64/libcuda-control.so < /agent/libcuda-control.so',
    'bin/',
    'bin/nvidia-smi = /agent/nvidia-smi.real',
    'bin/gpu-client < /agent/gpu-client',
  ]);
  t.end();
});

test('the version is named after the driver and the contents of the mirror', (t) => {
  const first = plan([CUDA]);
  t.match(first.version, /^535\.54\.03-[0-9a-f]{12}$/);
  t.equal(plan([CUDA]).version, first.version);
  t.not(plan([{ ...CUDA, identity: 'changed' }]).version, first.version);
  t.not(plan([CUDA, NVML]).version, first.version);
  t.not(plan([CUDA], { controls: CONTROLS }).version, first.version);
  t.end();
});

test('a control library has no name that the driver behind it lacks', (t) => {
  const known = { ...CUDA, exports: new Set(['cuInit', 'cuOfTheDriverOnly']) };
  const copies = (libraries: readonly HostLibrary[]) =>
    plan(libraries, { controls: CONTROLS }).steps.filter((step) => step.kind === 'copy');
  t.match(copies([known]), [{ to: 'lib64/libcuda.so.1', without: ['cuGetProcAddress_v2'] }]);
  t.match(copies([CUDA]), [{ without: [] }], 'of a driver whose names are not known nothing is left out');
  t.not(plan([known], { controls: CONTROLS }).version, plan([CUDA], { controls: CONTROLS }).version);
  t.end();
});

test('a three-part version is kept whole, and a name without a version gives none', (t) => {
  t.equal(plan([library('libcuda.so.460.106.00', { soname: 'libcuda.so.1' })]).driverVersion, '460.106.00');
  t.equal(plan([library('libcuda.so.1', { soname: 'libcuda.so.1' })]).driverVersion, null);
  t.equal(plan([library('libcuda.so.1.1', { soname: 'libcuda.so.1' })]).driverVersion, '1.1');
  t.end();
});

test('on aarch64 the libraries of that architecture are mirrored', (t) => {
  const arm = library('libcuda.so.580.95.05', { soname: 'libcuda.so.1', architecture: 'aarch64' });
  const result = plan([CUDA, arm], { architecture: 'aarch64' });
  t.equal(result.driverVersion, '580.95.05');
  t.match(result.leftOut, [{ path: CUDA.path, reason: /for x86-64, the node for aarch64/ }]);
  t.end();
});
