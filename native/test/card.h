/*
 * A card under the control library, as a program in a container meets it. Tests that include this are linked with the
 * driver's library name and find the control library there, with the simulated driver behind it.
 */
#ifndef CARD_H
#define CARD_H

#include "cuda_abi.h"
#include "sandbox.h"
#include "tap.h"

#define MIB (1ull << 20)

#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    CUresult card_result = (call);                                                                                     \
    if (card_result != CUDA_SUCCESS) {                                                                                 \
      tap_fail(__FILE__, __LINE__, "%s is %d", #call, (int)card_result);                                               \
      exit(TAP_FAIL);                                                                                                  \
    }                                                                                                                  \
  } while (0)

#define REFUSED(call) CHECK_EQ(call, CUDA_ERROR_OUT_OF_MEMORY)

/* Kernels whose names say what they take; busy_us takes the microseconds as its parameter. */
static const char card_kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                   ".visible .entry busy_us(.param .u64 us) { ret; }\n"
                                   ".visible .entry busy_us_1() { ret; }\n"
                                   ".visible .entry busy_us_20() { ret; }\n"
                                   ".visible .entry busy_us_200() { ret; }\n"
                                   ".visible .entry busy_ms_2() { ret; }\n"
                                   ".visible .entry busy_ms_20() { ret; }\n"
                                   ".visible .entry block_us_100() { ret; }\n";

static CUcontext card_context;
static CUmodule card_module;

__attribute__((unused)) static void card_open(void) {
  CUdevice device;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuCtxCreate_v2(&card_context, 0, device));
}

__attribute__((unused)) static CUfunction card_kernel(const char *name) {
  CUfunction function;
  if (card_module == NULL) OK(cuModuleLoadData(&card_module, card_kernels));
  OK(cuModuleGetFunction(&function, card_module, name));
  return function;
}

__attribute__((unused)) static CUresult card_launch(CUfunction function, unsigned int blocks, CUstream stream) {
  return cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

/* What the container is charged for on its first device. */
__attribute__((unused)) static uint64_t card_held(void) {
  static struct vgpu_usage *usage;
  if (usage == NULL) usage = sandbox_usage();
  return sandbox_held(usage, 0);
}

__attribute__((unused)) static uint64_t card_denied(enum vgpu_denied_api api) {
  static struct vgpu_usage *usage;
  if (usage == NULL) usage = sandbox_usage();
  return usage->devices[0].denied[api];
}

#endif
