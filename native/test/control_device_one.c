#define _GNU_SOURCE
#include "device_sources.h"

int main(void) {
  TEST_BEGIN(
      "with one GPU every call is charged to it, whatever context is current and whichever stream the call names");
  check_machine(1);
  return TEST_END;
}
