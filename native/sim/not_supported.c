/* Calls that are not simulated. They exist, so that programs that look up every call of their CUDA version find them,
 * and return CUDA_ERROR_NOT_SUPPORTED. */
#include "driver.h"

#define CUDA_NAME(since, name, symbol, stream)                                                                         \
  SIM_API CUresult symbol(void);                                                                                       \
  SIM_API CUresult symbol(void) {                                                                                      \
    ENTER();                                                                                                           \
    return CUDA_ERROR_NOT_SUPPORTED;                                                                                   \
  }
#include "cuda_calls.def"
