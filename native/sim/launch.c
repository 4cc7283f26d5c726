#include "capture.h"
#include "event.h"
#include "task.h"

#include <string.h>

static CUresult submit(CUfunction function, CUstream handle, const unsigned int grid[3], const unsigned int block[3],
                       unsigned int shared, void **parameters, void **extra, bool cooperative) {
  CUstream stream;
  struct kernel_launch launch;
  TRY(stream_resolve(handle, &stream));
  TRY(kernel_prepare(&launch, stream->context, function, grid, block, shared, parameters, extra, cooperative));
  if (__builtin_expect(!capture_concerns(stream), 1)) {
    kernel_push(stream, &launch);
    return CUDA_SUCCESS;
  }
  struct task task = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = launch};
  return task_submit(stream, &task);
}

SIM_API CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                CUstream stream, void **parameters, void **extra) {
  ENTER();
  const unsigned int grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return submit(function, stream, grid, block, shared, parameters, extra, false);
}
PER_THREAD_SZ(cuLaunchKernel,
              (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
               unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **parameters,
               void **extra),
              function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own_stream(stream), parameters,
              extra)

SIM_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared, CUstream stream,
                                           void **parameters) {
  ENTER();
  const unsigned int grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return submit(function, stream, grid, block, shared, parameters, NULL, true);
}
PER_THREAD_SZ(cuLaunchCooperativeKernel,
              (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
               unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **parameters),
              function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own_stream(stream), parameters)

/* Records events that launch attributes request, after the launch. */
static CUresult record_events(const CUlaunchConfig *config) {
  for (unsigned int i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttribute *attribute = &config->attrs[i];
    CUevent event = attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ? attribute->value.programmaticEvent.event
                    : attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
                        ? attribute->value.launchCompletionEvent.event
                        : NULL;
    if (event != NULL) TRY(cuEventRecord(event, config->hStream));
  }
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  ENTER();
  NEED(config != NULL && (config->numAttrs == 0 || config->attrs != NULL));
  bool cooperative = false;
  for (unsigned int i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = config->attrs[i].value.cooperative != 0;
  const unsigned int grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  const unsigned int block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
  TRY(submit(function, config->hStream, grid, block, config->sharedMemBytes, parameters, extra, cooperative));
  return record_events(config);
}

SIM_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                       void **extra) {
  NEED(config != NULL);
  CUlaunchConfig own = *config;
  own.hStream = own_stream(own.hStream);
  return cuLaunchKernelEx(&own, function, parameters, extra);
}

SIM_API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches, unsigned int count,
                                                      unsigned int flags) {
  ENTER();
  NEED(launches != NULL && count > 0 && count <= SIM_MAX_GPUS && flags <= 3);
  for (unsigned int i = 0; i < count; i++) {
    const CUDA_LAUNCH_PARAMS *launch = &launches[i];
    NEED((uintptr_t)launch->hStream > 2);
    const unsigned int grid[] = {launch->gridDimX, launch->gridDimY, launch->gridDimZ};
    const unsigned int block[] = {launch->blockDimX, launch->blockDimY, launch->blockDimZ};
    TRY(submit(launch->function, launch->hStream, grid, block, launch->sharedMemBytes, launch->kernelParams, NULL,
               true));
  }
  return CUDA_SUCCESS;
}

/* ---- launch calls of CUDA 2 and 3: shape and parameters are stored in the function ---- */

static CUresult launch_kept(CUfunction function, int width, int height, CUstream stream) {
  TRY(kernel_check(function));
  NEED(width > 0 && height > 0);
  const unsigned int grid[] = {(unsigned int)width, (unsigned int)height, 1};
  void *parameters[] = {function->parameters};
  return submit(function, stream, grid, function->block, 0, parameters, NULL, false);
}

SIM_API CUresult cuLaunch(CUfunction function) {
  ENTER();
  return launch_kept(function, 1, 1, NULL);
}

SIM_API CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  ENTER();
  return launch_kept(function, width, height, NULL);
}

SIM_API CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  ENTER();
  return launch_kept(function, width, height, stream);
}

SIM_API CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  ENTER();
  TRY(kernel_check(function));
  NEED(x > 0 && y > 0 && z > 0);
  function->block[0] = (unsigned int)x;
  function->block[1] = (unsigned int)y;
  function->block[2] = (unsigned int)z;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
  ENTER();
  (void)bytes;
  return kernel_check(function);
}

SIM_API CUresult cuParamSetSize(CUfunction function, unsigned int bytes) {
  ENTER();
  TRY(kernel_check(function));
  NEED(bytes <= sizeof function->parameters);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned int bytes) {
  ENTER();
  TRY(kernel_check(function));
  NEED(value != NULL && offset >= 0 && bytes <= sizeof function->parameters &&
       (size_t)offset <= sizeof function->parameters - bytes);
  memcpy(function->parameters + offset, value, bytes);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return cuParamSetv(function, offset, &value, sizeof value);
}

SIM_API CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return cuParamSetv(function, offset, &value, sizeof value);
}
