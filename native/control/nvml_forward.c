/* The target of a forwarded call: the driver's function, or a refusal. */
#include "forward.h"
#include "nvml_driver.h"
#include "nvml_refused.h"
#include <stddef.h>

void *forward_target(const char *name) {
  void *refusal = nvml_refusal(name);
  return refusal != NULL ? refusal : nvml_driver_find(name);
}
