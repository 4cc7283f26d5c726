#include "module.h"

/* Attributes of kernels: those of a small kernel compiled by nvcc, and values set by the program. */
enum { CONSTANT_BYTES = 360, REGISTERS = 32, MAX_THREADS = 1024, SHARED_BYTES = 49152, OPTIONAL_SHARED = 98304 };

static CUresult get(int *value, CUfunction_attribute attribute, const struct CUfunc_st *function,
                    const struct sim_gpu *gpu) {
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = MAX_THREADS;
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = REGISTERS;
    break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = CONSTANT_BYTES;
    break;
  case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    *value = 1;
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = (int)(gpu->major * 10 + gpu->minor_capability);
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->dynamic_shared > 0 ? function->dynamic_shared : SHARED_BYTES;
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    *value = function->carveout;
    break;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    *value = function->non_portable_cluster;
    break;
  default:
    if ((unsigned int)attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
      return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
  }
  return CUDA_SUCCESS;
}

static CUresult set(CUfunction_attribute attribute, int value, struct CUfunc_st *function) {
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    NEED(value >= 0 && value <= OPTIONAL_SHARED);
    function->dynamic_shared = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    NEED(value >= -1 && value <= 100);
    function->carveout = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    function->non_portable_cluster = value;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  CUcontext context;
  ENTER();
  NEED(value != NULL);
  TRY(kernel_check(function));
  TRY(driver_current(&context));
  return get(value, attribute, function, driver_gpu(context->device));
}

SIM_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ENTER();
  TRY(kernel_check(function));
  return set(attribute, value, function);
}

SIM_API CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  ENTER();
  NEED(value != NULL);
  NEED_DEVICE(device);
  TRY(kernel_check((CUfunction)kernel));
  return get(value, attribute, (CUfunction)kernel, driver_gpu(device));
}

SIM_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  ENTER();
  NEED_DEVICE(device);
  TRY(kernel_check((CUfunction)kernel));
  return set(attribute, value, (CUfunction)kernel);
}

SIM_API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  ENTER();
  NEED((unsigned int)config <= CU_FUNC_CACHE_PREFER_EQUAL);
  return kernel_check(function);
}

SIM_API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  ENTER();
  NEED((unsigned int)config <= CU_FUNC_CACHE_PREFER_EQUAL);
  NEED_DEVICE(device);
  return kernel_check((CUfunction)kernel);
}

SIM_API CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
  ENTER();
  NEED((unsigned int)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  return kernel_check(function);
}

SIM_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
  ENTER();
  NEED(module != NULL);
  TRY(kernel_check(function));
  *module = function->module;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetName(const char **name, CUfunction function) {
  ENTER();
  NEED(name != NULL);
  TRY(kernel_check(function));
  *name = function->name;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuKernelGetName(const char **name, CUkernel kernel) {
  return cuFuncGetName(name, (CUfunction)kernel);
}

/* Kernels have one parameter of eight bytes, or none. */
SIM_API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  ENTER();
  NEED(offset != NULL);
  TRY(kernel_check(function));
  NEED(index == 0 && !function->fixed);
  *offset = 0;
  if (size != NULL) *size = sizeof(uint64_t);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
  return cuFuncGetParamInfo((CUfunction)kernel, index, offset, size);
}

SIM_API CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
  ENTER();
  NEED(state != NULL);
  TRY(kernel_check(function));
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncLoad(CUfunction function) {
  ENTER();
  return kernel_check(function);
}

/* ---- occupancy ---- */

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                                      size_t shared, unsigned int flags) {
  ENTER();
  NEED(blocks != NULL && threads > 0 && threads <= MAX_THREADS && shared <= OPTIONAL_SHARED && flags <= 1);
  TRY(kernel_check(function));
  unsigned int fit = kernel_blocks_per_sm((unsigned int)threads);
  if (shared > 0 && OPTIONAL_SHARED / shared < fit) fit = (unsigned int)(OPTIONAL_SHARED / shared);
  *blocks = (int)fit;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                             size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, CU_OCCUPANCY_DEFAULT);
}

SIM_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *threads, CUfunction function,
                                                           CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                           unsigned int flags) {
  CUcontext context;
  ENTER();
  NEED(grid != NULL && threads != NULL && flags <= 1);
  (void)shared_of, (void)shared;
  TRY(kernel_check(function));
  TRY(driver_current(&context));
  *threads = limit > 0 && limit < MAX_THREADS ? limit / 32 * 32 : MAX_THREADS;
  if (*threads == 0) *threads = limit;
  *grid = (int)(context->board->model.sms * kernel_blocks_per_sm((unsigned int)*threads));
  return CUDA_SUCCESS;
}

SIM_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *threads, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, threads, function, shared_of, shared, limit, 0);
}

SIM_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *shared, CUfunction function, int blocks, int threads) {
  ENTER();
  NEED(shared != NULL && blocks > 0 && threads > 0 && threads <= MAX_THREADS);
  TRY(kernel_check(function));
  *shared = (size_t)OPTIONAL_SHARED / (size_t)blocks;
  return CUDA_SUCCESS;
}
