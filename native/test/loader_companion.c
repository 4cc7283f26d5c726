#include "tap.h"
#include <dlfcn.h>

int main(void) {
  TEST_BEGIN("libraries that the driver opens are found beside the control library, with an empty environment");
  TEST_NOT_WRAPPED("valgrind sets LD_LIBRARY_PATH");
#ifdef __SANITIZE_ADDRESS__
  TEST_SKIP("the address sanitizer opens libraries in the caller's place");
#endif
  char path[512];
  snprintf(path, sizeof path, "%s/future/libcuda.so.1", getenv("NATIVE_BUILD"));
  CHECK(getenv("LD_LIBRARY_PATH") == NULL);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) tap_fail(__FILE__, __LINE__, "%s", dlerror());
  REQUIRE(library != NULL);
  int (*opens_companion)(void) = (int (*)(void))dlsym(library, "cuFutureOpensCompanion");
  REQUIRE(opens_companion != NULL);
  CHECK(opens_companion());
  return TEST_END;
}
