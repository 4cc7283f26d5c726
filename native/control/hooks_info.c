/* Memory queries: programs see their slice instead of the GPU. */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Sizes of the 32-bit calls saturate, as in the driver. */
static unsigned int narrowed(uint64_t bytes) {
  return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  CUresult result = driver.cuDeviceTotalMem_v2(bytes, device);
  uint64_t total, left;
  if (result == CUDA_SUCCESS && control_enforces() && memory_view(devices_index(device), &total, &left))
    *bytes = smaller(*bytes, total);
  return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device) {
  CUresult result = driver.cuDeviceTotalMem(bytes, device);
  uint64_t total, left;
  if (result == CUDA_SUCCESS && control_enforces() && memory_view(devices_index(device), &total, &left))
    *bytes = (unsigned int)smaller(*bytes, narrowed(total));
  return result;
}

CUresult cuMemGetInfo_v2(size_t *left_bytes, size_t *total_bytes) {
  CUresult result = driver.cuMemGetInfo_v2(left_bytes, total_bytes);
  CUcontext context;
  uint64_t total, left;
  if (result != CUDA_SUCCESS || !control_enforces() || !memory_view(devices_current(&context), &total, &left))
    return result;
  *left_bytes = smaller(*left_bytes, left);
  *total_bytes = smaller(*total_bytes, total);
  return result;
}

CUresult cuMemGetInfo(unsigned int *left_bytes, unsigned int *total_bytes) {
  CUresult result = driver.cuMemGetInfo(left_bytes, total_bytes);
  CUcontext context;
  uint64_t total, left;
  if (result != CUDA_SUCCESS || !control_enforces() || !memory_view(devices_current(&context), &total, &left))
    return result;
  *left_bytes = (unsigned int)smaller(*left_bytes, narrowed(left));
  *total_bytes = (unsigned int)smaller(*total_bytes, narrowed(total));
  return result;
}
