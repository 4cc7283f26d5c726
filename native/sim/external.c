#include "array.h"
#include "context.h"
#include "ledger.h"
#include "memory.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory imported from another GPU API such as Vulkan. There is no such API in the simulation, so the import is
 * charged. If the file can be mapped, its contents are visible. */
enum { EXTERNAL_MAGIC = 0x45585445 };

struct CUextMemory_st {
  uint32_t magic;
  CUcontext context;
  uint64_t size, charged;
  void *area;
};

static CUresult check(CUexternalMemory memory) {
  return memory != NULL && memory->magic == EXTERNAL_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuImportExternalMemory(CUexternalMemory *result, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *described) {
  CUcontext context;
  ENTER();
  NEED(result != NULL && described != NULL && described->size > 0 && described->size < SIZE_MAX - SPACE_BLOCK);
  if (described->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
  TRY(driver_current(&context));
  CUexternalMemory memory = calloc(1, sizeof *memory);
  if (memory == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  memory->magic = EXTERNAL_MAGIC;
  memory->context = context;
  memory->size = described->size;
  memory->charged = (described->size + SPACE_BLOCK - 1) / SPACE_BLOCK * SPACE_BLOCK;
  memory->area = mmap(NULL, described->size, PROT_READ | PROT_WRITE, MAP_SHARED, described->handle.fd, 0);
  if (memory->area == MAP_FAILED || !sim_ledger_take(driver.machine, driver.process, context->gpu, memory->charged)) {
    CUresult why = memory->area == MAP_FAILED ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_OUT_OF_MEMORY;
    if (memory->area != MAP_FAILED) munmap(memory->area, memory->size);
    free(memory);
    return why;
  }
  close(described->handle.fd); /* the driver takes ownership of an imported descriptor */
  *result = memory;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer, CUexternalMemory memory,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *described) {
  struct allocation *allocation;
  ENTER();
  TRY(check(memory));
  NEED(pointer != NULL && described != NULL && described->size > 0 && described->flags == 0);
  NEED(described->offset <= memory->size && described->size <= memory->size - described->offset);
  CUdeviceptr base = (CUdeviceptr)(uintptr_t)memory->area + described->offset;
  if (memory_find(base) == NULL) {
    struct allocation model = {.base = base,
                               .size = described->size,
                               .kind = MEMORY_IMPORTED,
                               .context = memory->context,
                               .device = memory->context->device};
    TRY(memory_enlist(&model, &allocation));
  }
  *pointer = base;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory,
                                                         const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *described) {
  ENTER();
  TRY(check(memory));
  NEED(array != NULL && described != NULL && described->numLevels > 0 && described->offset < memory->size);
  CUdeviceptr base = (CUdeviceptr)(uintptr_t)memory->area + described->offset;
  return array_over(base, memory->size - described->offset, memory->context, &described->arrayDesc,
                    described->numLevels, array);
}

SIM_API CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  ENTER();
  TRY(check(memory));
  CUdeviceptr base = (CUdeviceptr)(uintptr_t)memory->area;
  for (CUdeviceptr at = base; at < base + memory->size; at += SPACE_BLOCK) {
    struct allocation *allocation = memory_find(at);
    if (allocation != NULL && allocation->kind == MEMORY_IMPORTED) memory_release(allocation);
  }
  munmap(memory->area, memory->size);
  sim_ledger_give(driver.machine, driver.process, memory->context->gpu, memory->charged);
  memory->magic = 0;
  free(memory);
  return CUDA_SUCCESS;
}
