#include "sim.h"

int main(void) {
  TEST_BEGIN("texture and surface objects are created from arrays and memory, and return their descriptions");
  CUDA_ARRAY3D_DESCRIPTOR plain = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  CUDA_ARRAY3D_DESCRIPTOR writable = plain;
  writable.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_LINEAR, .maxAnisotropy = 4}, told = {0};
  CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY}, of = {0};
  CUDA_RESOURCE_VIEW_DESC view = {.width = 64, .height = 64}, seen = {0};
  CUtexObject object;
  CUsurfObject surface;
  CUarray array, target;
  CUdeviceptr memory;

  sim_begin();
  OK(cuArray3DCreate_v2(&array, &plain));
  OK(cuArray3DCreate_v2(&target, &writable));
  CHECK_EQ(cuTexObjectCreate(&object, &resource, &texture, NULL), CUDA_ERROR_INVALID_HANDLE);
  resource.res.array.hArray = array;
  OK(cuTexObjectCreate(&object, &resource, &texture, &view));
  OK(cuTexObjectGetResourceDesc(&of, object));
  CHECK(of.res.array.hArray == array);
  OK(cuTexObjectGetTextureDesc(&told, object));
  CHECK_EQ(told.maxAnisotropy, 4);
  OK(cuTexObjectGetResourceViewDesc(&seen, object));
  CHECK_EQ(seen.width, 64);
  CHECK_EQ(cuSurfObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
  OK(cuTexObjectDestroy(object));
  CHECK_EQ(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(cuTexObjectGetResourceDesc(&of, object), CUDA_ERROR_INVALID_VALUE);

  CHECK_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
  OK(cuArrayDestroy(array));
  resource.res.array.hArray = target;
  OK(cuSurfObjectCreate(&surface, &resource));
  OK(cuSurfObjectGetResourceDesc(&of, surface));
  CHECK(of.res.array.hArray == target);
  OK(cuSurfObjectDestroy(surface));
  OK(cuArrayDestroy(target));

  OK(cuMemAlloc_v2(&memory, 4096));
  CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
  linear.res.linear.devPtr = memory;
  linear.res.linear.format = CU_AD_FORMAT_FLOAT;
  linear.res.linear.numChannels = 1;
  linear.res.linear.sizeInBytes = 4096;
  CHECK_EQ(cuTexObjectCreate(&object, &linear, &texture, &view), CUDA_ERROR_INVALID_VALUE);
  OK(cuTexObjectCreate(&object, &linear, &texture, NULL));
  CHECK_EQ(cuTexObjectGetResourceViewDesc(&seen, object), CUDA_ERROR_INVALID_VALUE);
  OK(cuTexObjectDestroy(object));
  return TEST_END;
}
