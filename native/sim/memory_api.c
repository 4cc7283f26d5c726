#include "capture.h"
#include "clock.h"
#include "context.h"
#include "graph_memory.h"
#include "ledger.h"
#include "memory.h"
#include "pool.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PITCH = 512 };

/* ---- memory queries ---- */

SIM_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  CUcontext context;
  ENTER();
  NEED(free_bytes != NULL && total != NULL);
  TRY(driver_current(&context));
  struct sim_ledger_view view;
  if (!sim_ledger_limited(driver.machine, driver.process, context->gpu, &view))
    view = sim_ledger_whole(driver.machine, context->gpu);
  *total = view.total;
  *free_bytes = view.used < view.total ? view.total - view.used : 0;
  return CUDA_SUCCESS;
}

static unsigned int narrow(size_t value) {
  return value > UINT32_MAX ? UINT32_MAX : (unsigned int)value;
}

SIM_API CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total) {
  size_t free_wide, total_wide;
  ENTER_NARROW();
  NEED(free_bytes != NULL && total != NULL);
  TRY(cuMemGetInfo_v2(&free_wide, &total_wide));
  *free_bytes = narrow(free_wide);
  *total = narrow(total_wide);
  return CUDA_SUCCESS;
}

/* ---- linear memory ---- */

static CUresult allocate(CUdeviceptr *pointer, size_t size) {
  CUcontext context;
  struct allocation *allocation;
  NEED(pointer != NULL && size > 0);
  TRY(driver_current(&context));
  TRY(capture_forbids());
  sim_clock_spend(driver.machine, driver.machine->node.allocate_ns);
  CUresult result = memory_allocate(context, size, MEMORY_LINEAR, &allocation);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_give_back(context))
    result = memory_allocate(context, size, MEMORY_LINEAR, &allocation);
  TRY(result);
  *pointer = allocation->base;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
  ENTER();
  return allocate(pointer, size);
}

/* The calls of CUDA 2 have 32-bit addresses, and no memory of this process has such an address. */
SIM_API CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int size) {
  ENTER_NARROW();
  NEED(pointer != NULL && size > 0);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                    unsigned int element) {
  ENTER();
  NEED(pitch != NULL && width > 0 && height > 0);
  NEED(element == 4 || element == 8 || element == 16);
  size_t row, size;
  if (__builtin_add_overflow(width, PITCH - 1, &row)) return CUDA_ERROR_INVALID_VALUE;
  row = row / PITCH * PITCH;
  if (__builtin_mul_overflow(row, height, &size)) return CUDA_ERROR_OUT_OF_MEMORY;
  TRY(allocate(pointer, size));
  *pitch = row;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width, unsigned int height,
                                 unsigned int element) {
  ENTER_NARROW();
  NEED(pointer != NULL && pitch != NULL && width > 0 && height > 0 && element > 0);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Managed memory migrates between host and GPU. The simulation counts it as resident on the GPU if the GPU has room for
 * it, and on the host otherwise. The call never fails for lack of GPU memory. */
SIM_API CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags) {
  CUcontext context;
  struct allocation *allocation;
  ENTER();
  NEED(pointer != NULL && size > 0 && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
  TRY(driver_current(&context));
  TRY(capture_forbids());
  size_t charge = size > SIZE_MAX - SPACE_BLOCK ? 0 : (size + SPACE_BLOCK - 1) / SPACE_BLOCK * SPACE_BLOCK;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  if (charge == 0 || !sim_ledger_take_managed(driver.machine, driver.process, context->gpu, charge)) charge = 0;
  struct allocation model = {.base = (CUdeviceptr)(uintptr_t)memory,
                             .size = size,
                             .charged = charge,
                             .kind = MEMORY_MANAGED,
                             .context = context,
                             .device = context->device,
                             .flags = flags};
  CUresult result = memory_enlist(&model, &allocation);
  if (result != CUDA_SUCCESS) {
    if (charge > 0) sim_ledger_give_managed(driver.machine, driver.process, context->gpu, charge);
    munmap(memory, size);
    return result;
  }
  atomic_fetch_add(&driver.machine->processes[driver.process].managed, 1);
  *pointer = model.base;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemFree_v2(CUdeviceptr pointer) {
  CUcontext context;
  ENTER();
  if (pointer == 0) return CUDA_SUCCESS;
  /* The address determines the context, so none has to be current. */
  CUresult health = driver_current(&context);
  if (health != CUDA_ERROR_INVALID_CONTEXT) TRY(health);
  TRY(capture_forbids());
  sim_clock_spend(driver.machine, driver.machine->node.allocate_ns);
  struct allocation *allocation = memory_find(pointer);
  NEED(allocation != NULL && allocation->base == pointer);
  if (allocation->kind == MEMORY_POOLED) return pool_free(allocation, NULL);
  if (allocation->kind == MEMORY_GRAPH) return graph_memory_unmap(pointer);
  bool imported = allocation->kind == MEMORY_IMPORTED && space_has(pointer); /* pointer of an imported pool */
  NEED(allocation->kind == MEMORY_LINEAR || allocation->kind == MEMORY_MANAGED || imported);
  /* Freeing waits for work that may still use the memory. */
  if (!context_is_idle(allocation->context)) TRY(context_synchronize(allocation->context));
  memory_release(allocation);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemFree(CUdeviceptr_v1 pointer) {
  return cuMemFree_v2(pointer);
}

SIM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
  CUcontext context;
  ENTER();
  TRY(driver_current(&context));
  const struct allocation *allocation = memory_find(pointer);
  if (allocation == NULL) return CUDA_ERROR_NOT_FOUND;
  if (base != NULL) *base = allocation->base;
  if (size != NULL) *size = allocation->size;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 pointer) {
  ENTER();
  (void)base, (void)size, (void)pointer;
  return CUDA_ERROR_NOT_FOUND;
}
