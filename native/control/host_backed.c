#include "host_backed.h"
#include "control.h"
#include "devices.h"
#include "driver.h"

/*
 * With the host as preferred location, pages are created and stay on the host. With the device as accessor, the GPU has
 * them mapped and faults at most at the first touch. GPUs without access to managed memory on the host (before Pascal,
 * some virtual machines) reject both hints.
 */
static CUresult pin_to_host(CUdeviceptr pointer, size_t bytes, int device) {
  CUresult result = driver.cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
  if (result != CUDA_SUCCESS) return result;
  return driver.cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, devices_ordinal((uint32_t)device));
}

CUresult host_backed_allocate(CUdeviceptr *pointer, const struct memory_reservation *reservation, unsigned int flags,
                              enum vgpu_denied_api api) {
  CUresult result = driver.cuMemAllocManaged(pointer, reservation->bytes, flags);
  if (result != CUDA_SUCCESS) return result;
  if (pin_to_host(*pointer, reservation->bytes, reservation->device) == CUDA_SUCCESS) return CUDA_SUCCESS;
  driver.cuMemFree_v2(*pointer);
  memory_count_denied(reservation, api);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

bool host_backed_has(CUdeviceptr pointer) {
  struct track_entry entry;
  CUdeviceptr base;
  size_t bytes;
  if (ledger_host_backed(&control.ledger) == 0) return false;
  if (driver.cuMemGetAddressRange_v2(&base, &bytes, pointer) != CUDA_SUCCESS) return false;
  return track_find(TRACK_HOST_BACKED, base, &entry);
}
