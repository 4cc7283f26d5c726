/* All calls that launch kernels. Each passes the gate. */
#include "devices.h"
#include "driver.h"
#include "gate.h"
#include "graphs.h"

#define WORD(low, high) ((uint64_t)(low) | (uint64_t)(high) << 32)

/* A kernel with one launch shape has one cost. */
static uint64_t key_of(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                       unsigned int by, unsigned int bz) {
  return launch_key((uint64_t)function, WORD(gx, gy), WORD(gz, bx), WORD(by, bz));
}

#define KERNEL_PARAMETERS                                                                                              \
  CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,            \
      unsigned int bz, unsigned int shared, CUstream stream, void **arguments
#define KERNEL_ARGUMENTS function, gx, gy, gz, bx, by, bz, shared, stream, arguments
#define KERNEL_KEY key_of(function, gx, gy, gz, bx, by, bz)

GATED(cuLaunchKernel, (KERNEL_PARAMETERS, void **extra), (KERNEL_ARGUMENTS, extra), KERNEL_KEY, stream)
GATED(cuLaunchKernel_ptsz, (KERNEL_PARAMETERS, void **extra), (KERNEL_ARGUMENTS, extra), KERNEL_KEY,
      capture_stream(stream, true))
GATED(cuLaunchCooperativeKernel, (KERNEL_PARAMETERS), (KERNEL_ARGUMENTS), KERNEL_KEY, stream)
GATED(cuLaunchCooperativeKernel_ptsz, (KERNEL_PARAMETERS), (KERNEL_ARGUMENTS), KERNEL_KEY, capture_stream(stream, true))

/* The driver itself rejects a missing configuration. */
static uint64_t key_of_config(const CUlaunchConfig *config, CUfunction function) {
  return config == NULL ? 1
                        : key_of(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                 config->blockDimY, config->blockDimZ);
}

static CUstream stream_of_config(const CUlaunchConfig *config) {
  return config == NULL ? NULL : config->hStream;
}

GATED(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra),
      (config, function, arguments, extra), key_of_config(config, function), stream_of_config(config))
GATED(cuLaunchKernelEx_ptsz, (const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra),
      (config, function, arguments, extra), key_of_config(config, function),
      capture_stream(stream_of_config(config), true))

static uint64_t key_of_part(const CUDA_LAUNCH_PARAMS *part) {
  return key_of(part->function, part->gridDimX, part->gridDimY, part->gridDimZ, part->blockDimX, part->blockDimY,
                part->blockDimZ);
}

/* One grid over several devices. Each is charged for the part in its stream. */
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags) {
  struct launch launches[VGPU_MAX_DEVICES];
  if (gate_is_open() || list == NULL || count > VGPU_MAX_DEVICES)
    return driver.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  for (unsigned int i = 0; i < count; i++) {
    launches[i] = (struct launch){.key = key_of_part(&list[i]), .stream = list[i].hStream};
    gate_enter(&launches[i]);
  }
  CUresult result = driver.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  for (unsigned int i = 0; i < count; i++)
    gate_leave(&launches[i], result);
  return result;
}

/* The launch calls of CUDA 2 take the block shape from the function, so the key does not contain it. */
#define GRID_KEY key_of(function, (unsigned int)width, (unsigned int)height, 0, 0, 0, 0)

GATED(cuLaunch, (CUfunction function), (function), key_of(function, 1, 1, 0, 0, 0, 0), NULL)
GATED(cuLaunchGrid, (CUfunction function, int width, int height), (function, width, height), GRID_KEY, NULL)
GATED(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
      (function, width, height, stream), GRID_KEY, stream)

/* Each device on which the graph runs is charged for the whole time of the launch, because the driver does not tell how
 * long the nodes of one device take. */
static CUresult launch_paced(CUgraphExec exec, CUstream asked, CUstream stream,
                             CUresult (*call)(CUgraphExec, CUstream)) {
  struct launch launches[VGPU_MAX_DEVICES];
  uint32_t devices = graphs_devices(exec, devices_of_stream(asked)), count = 0;
  for (int device = 0; devices >> device != 0; device++) {
    if ((devices >> device & 1) == 0) continue;
    launches[count] = (struct launch){.key = launch_key_of_graph(exec), .stream = asked};
    gate_enter_on(&launches[count++], device);
  }
  CUresult result = call(exec, stream);
  for (uint32_t i = 0; i < count; i++)
    gate_leave(&launches[i], result);
  return result;
}

static CUresult launch_graph(CUgraphExec exec, CUstream stream, CUresult (*call)(CUgraphExec, CUstream),
                             bool per_thread) {
  struct graph_reservation reservation;
  CUstream asked = capture_stream(stream, per_thread);
  if (!control_enforces() || capture_covers(asked)) return call(exec, stream);
  if (!graphs_reserve(exec, &reservation)) return CUDA_ERROR_OUT_OF_MEMORY;
  bool passes = gate_passes(launch_key_of_graph(exec)) || gate_is_open();
  CUresult result = passes ? call(exec, stream) : launch_paced(exec, asked, stream, call);
  graphs_commit(exec, &reservation, result == CUDA_SUCCESS);
  return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return launch_graph(exec, stream, driver.cuGraphLaunch, false);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return launch_graph(exec, stream, driver.cuGraphLaunch_ptsz, true);
}

/* Prepares a launch and may allocate its memory. */
static CUresult upload_graph(CUgraphExec exec, CUstream stream, CUresult (*call)(CUgraphExec, CUstream)) {
  struct graph_reservation reservation;
  if (!control_enforces()) return call(exec, stream);
  if (!graphs_reserve(exec, &reservation)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call(exec, stream);
  graphs_commit(exec, &reservation, false);
  return result;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return upload_graph(exec, stream, driver.cuGraphUpload);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  return upload_graph(exec, stream, driver.cuGraphUpload_ptsz);
}
