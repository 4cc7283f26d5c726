/* Holds 64 MiB of the first GPU and keeps it busy with kernels of 5 ms, until it is killed. */
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned int), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned int, int);
extern int cuMemAlloc_v2(unsigned long long *, size_t), cuModuleLoadData(void **, const void *);
extern int cuModuleGetFunction(void **, void *, const char *), cuCtxSynchronize(void);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static void need(const char *call, int code) {
  if (code == 0) return;
  fprintf(stderr, "%s: %d\n", call, code);
  exit(1);
}

int main(void) {
  int device;
  void *context, *module, *kernel;
  unsigned long long memory, microseconds = 5000;
  void *parameters[] = {&microseconds};
  need("cuInit", cuInit(0));
  need("cuDeviceGet", cuDeviceGet(&device, 0));
  need("cuCtxCreate", cuCtxCreate_v2(&context, 0, device));
  need("cuMemAlloc", cuMemAlloc_v2(&memory, 64u << 20));
  need("cuModuleLoadData", cuModuleLoadData(&module, ".visible .entry busy_us()"));
  need("cuModuleGetFunction", cuModuleGetFunction(&kernel, module, "busy_us"));
  for (;;) {
    need("cuLaunchKernel", cuLaunchKernel(kernel, 1000, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    need("cuCtxSynchronize", cuCtxSynchronize());
  }
}
