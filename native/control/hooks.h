/*
 * The hooked driver functions, made by the preprocessor from the one list of calls, as are the table of the driver's
 * own functions in driver.h and how cuGetProcAddress recognises them in proc_address.c.
 */
#ifndef VGPU_HOOKS_H
#define VGPU_HOOKS_H

#include "cuda_abi.h"

#define LEGACY CU_GET_PROC_ADDRESS_DEFAULT
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

#define CUDA_HOOK(since, name, symbol, ...) extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#include "cuda_calls.def"

#endif
