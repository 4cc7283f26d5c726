#include "sim.h"
#include "sim_nvml.h"
#include <dlfcn.h>

int main(void) {
  TEST_BEGIN(
      "calls that are not simulated are found by name and by cuGetProcAddress, and say that they are not supported");
  CUresult (*gl)(void) = (CUresult(*)(void))dlsym(RTLD_DEFAULT, "cuGLInit");
  REQUIRE(gl != NULL);
  CHECK_EQ(gl(), CUDA_ERROR_NOT_INITIALIZED);
  OK(cuInit(0));
  CHECK_EQ(gl(), CUDA_ERROR_NOT_SUPPORTED);
  CUdriverProcAddressQueryResult status;
  void *found;
  OK(cuGetProcAddress_v2("cuGLInit", &found, 13000, 0, &status));
  CHECK_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(found == (void *)gl);
  /* A call of a later CUDA version is not found by programs that pass their version. */
  OK(cuGetProcAddress_v2("cuGraphGetId", &found, 13000, 0, &status));
  CHECK_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);

  nvmlReturn_t (*vgpu)(void) = (nvmlReturn_t(*)(void))dlsym(RTLD_DEFAULT, "nvmlVgpuInstanceGetFbUsage");
  REQUIRE(vgpu != NULL);
  CHECK_EQ(vgpu(), NVML_ERROR_UNINITIALIZED);
  CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
  CHECK_EQ(vgpu(), NVML_ERROR_NOT_SUPPORTED);
  return TEST_END;
}
