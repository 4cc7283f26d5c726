import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { packageFile } from '../../../src/host/package-files.js';
import { NODE_ARCHITECTURE } from '../../../src/agent/libraries/architecture.js';
import { openHostRoot } from '../../../src/agent/libraries/host-root.js';
import { LibraryMirrors } from '../../../src/agent/libraries/library-mirrors.js';
import { describeControlLibrary } from '../../../src/agent/libraries/own-files.js';
import { scratchDirectory } from '../../scratch.js';

const NATIVE = packageFile('native/build');

/** A driver of an old branch: few names, one that this project does not know, and one that it only hands out. */
const DRIVER = `
#include <string.h>
int cuInit(unsigned flags) { return 100; }
int cuDriverGetVersion(int *version) { *version = 9010; return 0; }
int cuEGLApiInit(void) { return 7; }
static int cuMemAlloc_v2(void **p, unsigned long n) { return 3; }
int cuGetProcAddress(const char *name, void **function, int version, unsigned long flags) {
  *function = strcmp(name, "cuMemAlloc") == 0 ? (void *)cuMemAlloc_v2 : 0;
  return *function ? 0 : 500;
}
`;

const PROGRAM = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int cuInit(unsigned), cuGetProcAddress(const char *, void **, int, unsigned long);
int main(int argc, char **argv) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  for (int i = 1; i < argc; i++)
    printf("%s %s %s\\n", argv[i], dlsym(driver, argv[i]) ? "found" : "missing", dlsym(RTLD_DEFAULT, argv[i]) ? "found" : "missing");
  void *function = NULL;
  int answer = cuGetProcAddress("cuMemAlloc", &function, 3020, 0);
  Dl_info from;
  printf("cuInit %d, cuMemAlloc %d from %s\\n", cuInit(0), answer,
         function && dladdr(function, &from) ? strrchr(from.dli_fname, '/') + 1 : "nowhere");
  return 0;
}
`;

const compiler = ['/usr/bin/gcc', '/usr/bin/cc', '/usr/bin/clang'].find((path) => existsSync(path));
const built = existsSync(join(NATIVE, 'libcuda-control.so'));
const skip =
  compiler === undefined ? 'no C compiler' : !built ? 'the control library is not built (npm run native)' : false;

test(
  'programs in a slice find the names of the driver behind the control library, and no others',
  { skip },
  async (t) => {
    const scratch = await scratchDirectory(t);
    const source = (name: string, text: string): string => {
      writeFileSync(join(scratch, name), text);
      return join(scratch, name);
    };
    const libraries = join(scratch, 'host/usr/lib64');
    mkdirSync(libraries, { recursive: true });
    const cc = (...args: string[]) => execFileSync(compiler ?? '', args, { stdio: 'pipe' });
    const driver = join(libraries, 'libcuda.so.390.157');
    cc('-shared', '-fPIC', '-w', source('driver.c', DRIVER), '-Wl,-soname,libcuda.so.1', '-o', driver);
    symlinkSync('libcuda.so.390.157', join(libraries, 'libcuda.so.1'));

    const mirrors = new LibraryMirrors({
      volumes: [{ name: 'nvidia', base: join(scratch, 'vdriver'), libraries: ['libcuda.so'], binaries: [] }],
      hostRoot: await openHostRoot(join(scratch, 'host')),
      architecture: NODE_ARCHITECTURE,
      controls: [await describeControlLibrary(join(NATIVE, 'libcuda-control.so'))],
      ownFiles: new Map(),
      log: silentLog(),
      clock: systemClock,
    });
    t.same(await mirrors.start(), { ok: true });
    await mirrors.stop();

    const mirror = join(mirrors.directory('shared') ?? '', 'lib64');
    const program = join(scratch, 'program');
    cc(source('program.c', PROGRAM), `-L${mirror}`, '-lcuda', '-ldl', '-o', program);
    const run = spawnSync(
      program,
      ['cuInit', 'cuDriverGetVersion', 'cuEGLApiInit', 'cuMemAlloc_v2', 'cuGetProcAddress_v2'],
      {
        encoding: 'utf8',
        env: { LD_LIBRARY_PATH: mirror },
      },
    );
    t.equal(
      run.stdout,
      'cuInit found found\ncuDriverGetVersion found found\ncuEGLApiInit found found\n' +
        'cuMemAlloc_v2 missing missing\ncuGetProcAddress_v2 missing missing\n' +
        'cuInit 100, cuMemAlloc 0 from libcuda.so.1\n',
      run.stderr,
    );
    const absent = source(
      'absent.c',
      'int cuMemAlloc_v2(void **, unsigned long); int main(void) { return cuMemAlloc_v2(0, 1); }',
    );
    const link = spawnSync(compiler ?? '', [absent, `-L${mirror}`, '-lcuda', '-o', join(scratch, 'absent')], {
      encoding: 'utf8',
    });
    t.match(
      link.stderr,
      /undefined reference to .cuMemAlloc_v2/,
      'a program that needs more does not link, as with the driver',
    );
  },
);
