/* Declarations of the hooked driver functions, generated from cuda_calls.def. The table of the driver's functions in
 * driver.h and the lookup in proc_address.c come from the same list. */
#ifndef VGPU_HOOKS_H
#define VGPU_HOOKS_H

#include "cuda_abi.h"

#define LEGACY CU_GET_PROC_ADDRESS_DEFAULT
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

#define CUDA_HOOK(since, name, symbol, ...) extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#include "cuda_calls.def"

#endif
