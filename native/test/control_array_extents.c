#include "gpu.h"

#define LAYERED CUDA_ARRAY3D_LAYERED
#define CUBE CUDA_ARRAY3D_CUBEMAP

/* Arrays that the GPU has memory for and the slice has not. */
static const struct {
  CUDA_ARRAY3D_DESCRIPTOR array;
  CUresult result, mipmapped;
} cases[] = {
    {{131072, 1000, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE},
    {{131073, 1000, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{1024, 65537, 0, CU_AD_FORMAT_FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{32768, 32768, 0, CU_AD_FORMAT_FLOAT, 1, 0}, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
    {{40000, 4000, 0, CU_AD_FORMAT_HALF, 1, CUDA_ARRAY3D_TEXTURE_GATHER},
     CUDA_ERROR_INVALID_VALUE,
     CUDA_ERROR_INVALID_VALUE},
    {{8192, 8192, 0, CU_AD_FORMAT_FLOAT, 3, 0}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{16385, 128, 128, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{64, 128, 20000, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
    {{64, 128, 20000, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SURFACE_LDST},
     CUDA_ERROR_INVALID_VALUE,
     CUDA_ERROR_INVALID_VALUE},
    {{1024, 0, 1024, CU_AD_FORMAT_FLOAT, 4, 0}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{32768, 0, 2048, CU_AD_FORMAT_FLOAT, 1, LAYERED}, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
    {{32769, 0, 2048, CU_AD_FORMAT_FLOAT, 1, LAYERED}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{1024, 1024, 2049, CU_AD_FORMAT_UNSIGNED_INT8, 1, LAYERED}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{4096, 4096, 12, CU_AD_FORMAT_FLOAT, 1, CUBE}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{4096, 4096, 6, CU_AD_FORMAT_FLOAT, 1, CUBE}, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
    {{256, 256, 2052, CU_AD_FORMAT_FLOAT, 1, CUBE | LAYERED}, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
    {{256, 256, 2046, CU_AD_FORMAT_FLOAT, 1, CUBE | LAYERED}, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
};

/* Whether the calls for arrays of one or two dimensions make it. */
static bool is_flat(const CUDA_ARRAY3D_DESCRIPTOR *array) {
  return array->Depth == 0 && array->Flags == 0;
}

int main(void) {
  TEST_BEGIN("extents that the GPU does not have are the driver's error in a slice too, and not out of memory");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  gpu_open();
  CUarray array;
  CUmipmappedArray mipmap;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const CUDA_ARRAY3D_DESCRIPTOR *asked = &cases[i].array;
    printf("%zu x %zu x %zu, flags %u\n", asked->Width, asked->Height, asked->Depth, asked->Flags);
    CHECK_EQ(cuArray3DCreate_v2(&array, asked), cases[i].result);
    CHECK_EQ(cuMipmappedArrayCreate(&mipmap, asked, 1), cases[i].mipmapped);
    CUDA_ARRAY_DESCRIPTOR flat = {asked->Width, asked->Height, asked->Format, asked->NumChannels};
    if (is_flat(asked)) CHECK_EQ(cuArrayCreate_v2(&array, &flat), cases[i].result);
  }
  CHECK_EQ(gpu_held(), 0);

  /* Without a context that is the error, whatever the extents are. */
  OK(cuCtxSetCurrent(NULL));
  CHECK_EQ(cuArray3DCreate_v2(&array, &cases[1].array), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQ(cuMipmappedArrayCreate(&mipmap, &cases[1].array, 1), CUDA_ERROR_INVALID_CONTEXT);

  /* The calls of CUDA 2 work in contexts of CUDA 2 only, which stand beside no later one. */
  CUcontext old;
  OK(cuCtxDestroy_v2(gpu_context));
  OK(cuCtxCreate(&old, 0, 0));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const CUDA_ARRAY3D_DESCRIPTOR *asked = &cases[i].array;
    unsigned int width = (unsigned int)asked->Width, height = (unsigned int)asked->Height;
    CUDA_ARRAY3D_DESCRIPTOR_v1 narrow = {
        width, height, (unsigned int)asked->Depth, asked->Format, asked->NumChannels, asked->Flags};
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {width, height, asked->Format, asked->NumChannels};
    CHECK_EQ(cuArray3DCreate(&array, &narrow), cases[i].result);
    if (is_flat(asked)) CHECK_EQ(cuArrayCreate(&array, &flat), cases[i].result);
  }
  return TEST_END;
}
