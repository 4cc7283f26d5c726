#include "context.h"

#include <stdlib.h>

/* Green contexts keep the primary context of their device alive. The partitioning of SMs is not simulated: work in a
 * green context runs in the primary context. */
enum { GREEN_MAGIC = 0x4752454e };

struct CUgreenCtx_st {
  unsigned int magic;
  CUdevice device;
  CUcontext primary;
};

struct CUdevResourceDesc_st {
  unsigned int resources;
};

SIM_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                           unsigned int count) {
  static struct CUdevResourceDesc_st all = {.resources = 1};
  ENTER();
  NEED(description != NULL && resources != NULL && count > 0);
  *description = &all;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxCreate(CUgreenCtx *result, CUdevResourceDesc description, CUdevice device,
                                  unsigned int flags) {
  ENTER();
  NEED(result != NULL && description != NULL && flags == CU_GREEN_CTX_DEFAULT_STREAM);
  NEED_DEVICE(device);
  CUgreenCtx green = calloc(1, sizeof *green);
  if (green == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *green = (struct CUgreenCtx_st){.magic = GREEN_MAGIC, .device = device};
  CUresult retained = cuDevicePrimaryCtxRetain(&green->primary, device);
  if (retained == CUDA_SUCCESS)
    *result = green;
  else
    free(green);
  return retained;
}

SIM_API CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  ENTER();
  NEED(green != NULL && green->magic == GREEN_MAGIC);
  CUdevice device = green->device;
  green->magic = 0;
  free(green);
  return cuDevicePrimaryCtxRelease_v2(device);
}

SIM_API CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
  ENTER();
  NEED(context != NULL && green != NULL && green->magic == GREEN_MAGIC);
  *context = green->primary;
  return CUDA_SUCCESS;
}
