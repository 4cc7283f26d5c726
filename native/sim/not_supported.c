/*
 * Calls that the simulated driver does not have: programs that look for every call of their CUDA version find them, and
 * are told when they call one.
 */
#include "driver.h"

#define CUDA_NAME(since, name, symbol, stream)                                                                         \
  SIM_API CUresult symbol(void);                                                                                       \
  SIM_API CUresult symbol(void) {                                                                                      \
    ENTER();                                                                                                           \
    return CUDA_ERROR_NOT_SUPPORTED;                                                                                   \
  }
#include "cuda_calls.def"
