/* The same as not_supported.c, for NVML. */
#include "nvml.h"

#define NVML_NAME(symbol)                                                                                              \
  SIM_API nvmlReturn_t symbol(void);                                                                                   \
  SIM_API nvmlReturn_t symbol(void) {                                                                                  \
    ENTER();                                                                                                           \
    return NVML_ERROR_NOT_SUPPORTED;                                                                                   \
  }
#include "nvml_calls.def"
