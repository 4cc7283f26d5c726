#include "host_backed.h"
#include "control.h"
#include "devices.h"
#include "driver.h"

/*
 * With the host as preferred location, pages begin there and stay there; as the device is one that accesses them, it
 * has them mapped and meets no page fault after the first touch. GPUs that cannot access managed memory beside the
 * host (before Pascal, some virtual machines) refuse both.
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
