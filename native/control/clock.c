#define _GNU_SOURCE
#include "clock.h"
#include "symbol_version.h"
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own library in every process. */
#define VDSO "linux-vdso.so.1"
#if defined(__x86_64__)
#define VDSO_CLOCK "__vdso_clock_gettime"
#else
#define VDSO_CLOCK "__kernel_clock_gettime"
#endif

/* Where the kernel's library is missing, as under valgrind. */
static int call_kernel(clockid_t clock, struct timespec *time) {
  return (int)syscall(SYS_clock_gettime, clock, time);
}

static clock_function *function = call_kernel;

__attribute__((constructor)) static void find(void) {
  clock_function *found = clock_of_test();
  void *vdso = found == NULL ? dlopen(VDSO, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (vdso != NULL) found = (clock_function *)dlsym(vdso, VDSO_CLOCK);
  if (found != NULL) function = found;
}

void clock_read(clockid_t clock, struct timespec *time) {
  function(clock, time);
}
