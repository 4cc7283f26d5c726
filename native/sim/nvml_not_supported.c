/* NVML functions that are not simulated, see not_supported.c. */
#include "nvml.h"

#define NVML_NAME(symbol)                                                                                              \
  SIM_API nvmlReturn_t symbol(void);                                                                                   \
  SIM_API nvmlReturn_t symbol(void) {                                                                                  \
    ENTER();                                                                                                           \
    return NVML_ERROR_NOT_SUPPORTED;                                                                                   \
  }
#include "nvml_calls.def"
