#include "gpu.h"

int main(void) {
  TEST_BEGIN("the process slot says what the driver cannot checkpoint, from the first call on, and a later process "
             "begins anew");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 1024 * MIB, 100, 0);
  gpu_open();
  const struct vgpu_usage *usage = sandbox_usage();
  const struct vgpu_process_slot *slot = &usage->slots[0];
  CUdeviceptr pointer, managed;
  CUipcMemHandle handle;
  CUmemGenericAllocationHandle physical;
  CUmemAllocationProp own = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CHECK_EQ(slot->obstacles_owner, slot->owner);
  CHECK(slot->owner != 0);
  OK(cuMemAlloc_v2(&pointer, MIB));
  OK(cuMemCreate(&physical, 2 * MIB, &own, 0));
  CHECK_EQ(slot->obstacles, 0);
  OK(cuIpcGetMemHandle(&handle, pointer));
  CHECK_EQ(slot->obstacles, VGPU_OBSTACLE_SHARED);
  OK(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemFree_v2(managed));
  CHECK_EQ(slot->obstacles, VGPU_OBSTACLE_SHARED | VGPU_OBSTACLE_MANAGED);
  OK(cuMemRelease(physical));
  OK(cuMemFree_v2(pointer));
  return TEST_END;
}
