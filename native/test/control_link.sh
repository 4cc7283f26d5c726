#!/bin/sh
# Programs are also linked in containers: Triton links its driver module there at run time, and others link extensions.
set -u
echo "programs and modules link with the control libraries as with the driver's, by GNU ld and lld, and run"
for tool in "${CC:-cc}" readelf; do
  command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
case $NATIVE_BUILD in */debug) echo "skip: what is linked here would need the sanitizers"; exit 77 ;; esac
failed=0
fail() {
  echo "$1"
  failed=1
}
cd "$GPU_SIM_STATE" || exit 1
mkdir mirror
for library in libcuda libnvidia-ml; do
  cp "$NATIVE_BUILD/mirror/$library.so.1" "$NATIVE_BUILD/mirror/$library-origin.so.1" mirror
  ln -s $library.so.1 mirror/$library.so
done

cat >program.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuModuleGetFunction(void *, void *, const char *), cuGLInit(void);
int main(int argc, char **argv) {
  int device;
  if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 || device != 0) return 1;
  if (cuModuleGetFunction(NULL, NULL, "") == 0) return 2;
  if (cuGLInit() == 0) return 3; /* the simulated driver has no OpenGL */
  for (int i = 1; i < argc; i++) {
    void *module = dlopen(argv[i], RTLD_NOW);
    int (*ask)(void) = module == NULL ? NULL : (int (*)(void))dlsym(module, "ask");
    if (ask == NULL) return puts(dlerror()), 4;
    if (ask() != 0) return 5;
  }
  return 0;
}
C
cat >module.c <<'C'
int cuDeviceGet(int *, int);
int ask(void) {
  int device;
  return cuDeviceGet(&device, 0);
}
C
cat >nvml.c <<'C'
int nvmlInit_v2(void), nvmlDeviceGetCount_v2(unsigned *), nvmlShutdown(void);
int main(void) {
  unsigned count = 0;
  return nvmlInit_v2() != 0 || nvmlDeviceGetCount_v2(&count) != 0 || count == 0 || nvmlShutdown() != 0;
}
C

link() { # output, what it is, arguments
  output=$1 what=$2
  shift 2
  "${CC:-cc}" "$@" -o "$output" 2>errors || fail "$what does not link: $(head -n 3 errors)"
}

linkers=bfd
command -v ld.lld >/dev/null && linkers="bfd lld" || echo "lld is not installed and was not tested"
for linker in $linkers; do
  modules=
  for needed in as-needed no-as-needed; do
    module=./module-$linker-$needed.so
    link $module "a module by $linker with --$needed" -shared -fPIC -fuse-ld=$linker -Wl,--$needed module.c -Lmirror -l:libcuda.so.1
    readelf -dW $module | grep -q 'NEEDED.*\[libcuda.so.1\]' || fail "a module by $linker with --$needed does not need libcuda.so.1"
    modules="$modules $module"
  done
  for now in now lazy; do
    link program "a program by $linker, bound $now" -fuse-ld=$linker -Wl,-z,$now program.c -Lmirror -lcuda -ldl
    LD_LIBRARY_PATH=mirror ./program $modules || fail "a program by $linker, bound $now, ends with $?"
    link nvml "an NVML program by $linker, bound $now" -fuse-ld=$linker -Wl,-z,$now nvml.c -Lmirror -lnvidia-ml
    LD_LIBRARY_PATH=mirror ./nvml || fail "an NVML program by $linker, bound $now, ends with $?"
  done
done
exit $failed
