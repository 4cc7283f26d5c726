#include "capture.h"
#include "context.h"
#include "memory.h"

#include <sys/mman.h>

/* Host memory that is accessible to the GPU. Device and host address are equal. */
static CUresult allocate(void **pointer, size_t size, unsigned int flags) {
  CUcontext context;
  struct allocation *allocation;
  NEED(pointer != NULL && size > 0);
  TRY(driver_current(&context));
  TRY(capture_forbids());
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  struct allocation model = {.base = (CUdeviceptr)(uintptr_t)memory,
                             .size = size,
                             .kind = MEMORY_HOST,
                             .context = context,
                             .device = context->device,
                             .flags = flags};
  CUresult result = memory_enlist(&model, &allocation);
  if (result != CUDA_SUCCESS)
    munmap(memory, size);
  else
    *pointer = memory;
  return result;
}

SIM_API CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags) {
  ENTER();
  NEED((flags & ~7u) == 0);
  return allocate(pointer, size, flags);
}

SIM_API CUresult cuMemAllocHost_v2(void **pointer, size_t size) {
  ENTER();
  return allocate(pointer, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

SIM_API CUresult cuMemAllocHost(void **pointer, unsigned int size) {
  return cuMemAllocHost_v2(pointer, size);
}

static struct allocation *host_at(void *pointer) {
  struct allocation *allocation = memory_find((CUdeviceptr)(uintptr_t)pointer);
  if (allocation == NULL || (allocation->kind != MEMORY_HOST && allocation->kind != MEMORY_REGISTERED)) return NULL;
  return allocation;
}

SIM_API CUresult cuMemFreeHost(void *pointer) {
  ENTER();
  struct allocation *allocation = host_at(pointer);
  NEED(allocation != NULL && allocation->kind == MEMORY_HOST && allocation->base == (CUdeviceptr)(uintptr_t)pointer);
  if (!allocation->context->destroyed) TRY(context_synchronize(allocation->context));
  memory_release(allocation);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned int flags) {
  ENTER();
  NEED(device != NULL && flags == 0 && host_at(pointer) != NULL);
  *device = (CUdeviceptr)(uintptr_t)pointer;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *device, void *pointer, unsigned int flags) {
  ENTER();
  NEED(device != NULL && pointer != NULL && flags == 0);
  return CUDA_ERROR_NOT_SUPPORTED; /* no host address fits into 32 bits */
}

SIM_API CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer) {
  ENTER();
  const struct allocation *allocation = host_at(pointer);
  NEED(flags != NULL && allocation != NULL);
  *flags = allocation->flags;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags) {
  CUcontext context;
  struct allocation *allocation;
  ENTER();
  NEED(pointer != NULL && size > 0 && (flags & ~15u) == 0);
  TRY(driver_current(&context));
  if (memory_find((CUdeviceptr)(uintptr_t)pointer) != NULL) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  struct allocation model = {.base = (CUdeviceptr)(uintptr_t)pointer,
                             .size = size,
                             .kind = MEMORY_REGISTERED,
                             .context = context,
                             .device = context->device,
                             .flags = flags};
  return memory_enlist(&model, &allocation);
}

SIM_API CUresult cuMemHostRegister(void *pointer, size_t size, unsigned int flags) {
  return cuMemHostRegister_v2(pointer, size, flags);
}

SIM_API CUresult cuMemHostUnregister(void *pointer) {
  ENTER();
  struct allocation *allocation = memory_find((CUdeviceptr)(uintptr_t)pointer);
  if (allocation == NULL || allocation->kind != MEMORY_REGISTERED) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  memory_release(allocation);
  return CUDA_SUCCESS;
}
