#define _GNU_SOURCE
#include "device_sources.h"

int main(void) {
  TEST_BEGIN("with parts of two GPUs every call is charged to the GPU of its stream, its pool or its context");
  check_machine(2);
  return TEST_END;
}
