#include "nvml_refused.h"
#include "nvml_abi.h"
#include "nvml_view.h"
#include <stddef.h>
#include <string.h>

static const char *const refused[] = {
#define NAME(symbol) #symbol,
    NVML_MODIFIES(NAME) NVML_REPORTS_OTHERS(NAME)
#undef NAME
};

/* Called through pointers of other function types. It ignores the arguments, which is safe because the caller cleans up
 * the stack on x86-64 and aarch64. */
static nvmlReturn_t refuse(void) {
  return NVML_ERROR_NO_PERMISSION;
}

void *nvml_refusal(const char *name) {
  if (nvml_view()->limits == NULL) return NULL;
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    if (strcmp(refused[i], name) == 0) return (void *)refuse;
  return NULL;
}
