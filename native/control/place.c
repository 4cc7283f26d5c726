#include "place.h"
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "obstacles.h"

static int current_device(void) {
  CUcontext context;
  int device = devices_current(&context);
  if (device != DEVICE_NONE) return device;
  return devices_only() != DEVICE_UNLISTED ? devices_only() : 0;
}

int place_of(CUmemAllocationType type, const CUmemLocation *location) {
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED && control_enforces()) obstacles_add(VGPU_OBSTACLE_MANAGED);
  switch ((int)location->type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    return devices_index(location->id);
  case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
    return devices_index(location->id & 0xff); /* the locality domain is in the next byte */
  case CU_MEM_LOCATION_TYPE_INVISIBLE:
    return DEVICE_UNLISTED;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED) return PLACE_HOST;
    break;
  default:
    break;
  }
  return current_device();
}

int place_of_pool(CUmemoryPool pool, int device) {
  CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_INVALID};
  int type = CU_MEM_ALLOCATION_TYPE_INVALID;
  if (driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_ALLOCATION_TYPE, &type) != CUDA_SUCCESS ||
      driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_LOCATION_TYPE, &location.type) != CUDA_SUCCESS ||
      driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_LOCATION_ID, &location.id) != CUDA_SUCCESS)
    return device;
  return place_of((CUmemAllocationType)type, &location);
}
