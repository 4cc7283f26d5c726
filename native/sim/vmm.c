#define _GNU_SOURCE

#include "capture.h"
#include "context.h"
#include "descriptor.h"
#include "ledger.h"
#include "memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A physical allocation. Its handle is its address. */
struct physical {
  struct physical *next;
  unsigned int handles; /* references by handles */
  unsigned int mappings;
  size_t size;
  CUdevice device; /* location; CU_DEVICE_CPU: on the host, not charged */
  int file;        /* holds the contents; -1: not created yet */
  int object;      /* index in the ledger after export or import; -1: none */
  CUmemAllocationProp properties;
};

struct mapping {
  CUdeviceptr base;
  size_t size, offset;
  struct physical *physical;
  bool accessible;
  struct mapping *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;
static struct physical *physicals;

/* A handle may be invalid or released, so it is searched for and not dereferenced. */
static struct physical *physical_of(CUmemGenericAllocationHandle handle) {
  pthread_mutex_lock(&lock);
  struct physical *physical = physicals;
  while (physical != NULL && (uintptr_t)physical != handle)
    physical = physical->next;
  pthread_mutex_unlock(&lock);
  return physical;
}

static CUmemGenericAllocationHandle handle_of(struct physical *physical) {
  return (uintptr_t)physical;
}

static bool is_aligned(unsigned long long value) {
  return value % SPACE_BLOCK == 0;
}

/* ---- addresses ---- */

static bool overlaps(const struct mapping *mapping, CUdeviceptr pointer, size_t size) {
  return mapping->base < pointer + size && pointer < mapping->base + mapping->size;
}

static struct mapping *mapping_at(CUdeviceptr pointer) {
  for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
    if (overlaps(mapping, pointer, 1)) return mapping;
  return NULL;
}

static bool is_accessible(CUdeviceptr address, size_t size) {
  bool good = true;
  pthread_mutex_lock(&lock);
  while (size > 0 && good) {
    const struct mapping *mapping = mapping_at(address);
    good = mapping != NULL && mapping->accessible;
    if (!good) break;
    size_t covered = mapping->base + mapping->size - address;
    if (covered > size) covered = size;
    address += covered;
    size -= covered;
  }
  pthread_mutex_unlock(&lock);
  return good;
}

SIM_API CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr hint,
                                     unsigned long long flags) {
  struct allocation *allocation;
  ENTER();
  (void)hint;
  NEED(pointer != NULL && size > 0 && is_aligned(size) && flags == 0);
  NEED((alignment & (alignment - 1)) == 0);
  if (alignment < SPACE_BLOCK) alignment = SPACE_BLOCK;
  if (size > SIZE_MAX / 2 - alignment) return CUDA_ERROR_OUT_OF_MEMORY;
  char *area = mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t front = (alignment - (uintptr_t)area % alignment) % alignment;
  if (front > 0) munmap(area, front);
  if (alignment > front) munmap(area + front + size, alignment - front);
  struct allocation model = {.base = (CUdeviceptr)(uintptr_t)(area + front),
                             .size = size,
                             .kind = MEMORY_RESERVED,
                             .is_accessible = is_accessible};
  CUresult result = memory_enlist(&model, &allocation);
  if (result != CUDA_SUCCESS)
    munmap(area + front, size);
  else
    *pointer = model.base;
  return result;
}

static bool is_mapped(CUdeviceptr pointer, size_t size) {
  for (const struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
    if (overlaps(mapping, pointer, size)) return true;
  return false;
}

SIM_API CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
  ENTER();
  struct allocation *allocation = memory_find(pointer);
  NEED(allocation != NULL && allocation->kind == MEMORY_RESERVED && allocation->base == pointer);
  NEED(allocation->size == size);
  pthread_mutex_lock(&lock);
  bool mapped = is_mapped(pointer, size);
  pthread_mutex_unlock(&lock);
  NEED(!mapped);
  memory_release(allocation);
  munmap((void *)(uintptr_t)pointer, size);
  return CUDA_SUCCESS;
}

/* ---- physical memory ---- */

static CUresult check_properties(const CUmemAllocationProp *properties) {
  NEED(properties != NULL && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
  NEED((properties->requestedHandleTypes & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0);
  switch (properties->location.type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    NEED_DEVICE(properties->location.id);
    return CUDA_SUCCESS;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static struct physical *make(size_t size, CUdevice device) {
  struct physical *physical = calloc(1, sizeof *physical);
  if (physical == NULL) return NULL;
  physical->handles = 1;
  physical->size = size;
  physical->device = device;
  physical->file = -1;
  physical->object = -1;
  pthread_mutex_lock(&lock);
  physical->next = physicals;
  physicals = physical;
  pthread_mutex_unlock(&lock);
  return physical;
}

SIM_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                             unsigned long long flags) {
  ENTER();
  NEED(handle != NULL && size > 0 && is_aligned(size) && flags == 0);
  TRY(check_properties(properties));
  TRY(capture_forbids());
  CUdevice device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties->location.id : CU_DEVICE_CPU;
  if (device != CU_DEVICE_CPU && !sim_ledger_take(driver.machine, driver.process, driver.gpus[device], size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  struct physical *physical = make(size, device);
  if (physical == NULL) {
    if (device != CU_DEVICE_CPU) sim_ledger_give(driver.machine, driver.process, driver.gpus[device], size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->properties = *properties;
  if (device != CU_DEVICE_CPU && properties->requestedHandleTypes != 0) {
    physical->object = sim_ledger_share(driver.machine, driver.process, driver.gpus[device], size, 0);
    if (physical->object < 0) {
      cuMemRelease(handle_of(physical));
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  *handle = handle_of(physical);
  return CUDA_SUCCESS;
}

/* Frees the memory when it has no handle and no mapping. The caller holds the lock. */
static void drop(struct physical *physical) {
  if (physical->handles > 0 || physical->mappings > 0) return;
  if (physical->object >= 0)
    sim_ledger_drop(driver.machine, driver.process, (uint32_t)physical->object);
  else if (physical->device != CU_DEVICE_CPU)
    sim_ledger_give(driver.machine, driver.process, driver.gpus[physical->device], physical->size);
  if (physical->file >= 0) close(physical->file);
  struct physical **at = &physicals;
  while (*at != physical)
    at = &(*at)->next;
  *at = physical->next;
  free(physical);
}

SIM_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER();
  struct physical *physical = physical_of(handle);
  NEED(physical != NULL);
  pthread_mutex_lock(&lock);
  bool held = physical->handles > 0;
  if (held) {
    physical->handles--;
    drop(physical);
  }
  pthread_mutex_unlock(&lock);
  NEED(held);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                               CUmemAllocationGranularity_flags option) {
  ENTER();
  NEED(granularity != NULL && (unsigned int)option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  TRY(check_properties(properties));
  *granularity = SPACE_BLOCK;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                        CUmemGenericAllocationHandle handle) {
  ENTER();
  const struct physical *physical = physical_of(handle);
  NEED(properties != NULL && physical != NULL);
  *properties = physical->properties;
  return CUDA_SUCCESS;
}

/* ---- mappings ---- */

/* The file with the contents: all mappings of the memory share it, also in other processes. */
static bool has_file(struct physical *physical) {
  char path[PATH_MAX];
  if (physical->file >= 0) return true;
  if (physical->object >= 0) {
    sim_machine_object_path(driver.machine->objects[physical->object].id, path, sizeof path);
    physical->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  } else {
    physical->file = memfd_create("gpu-sim", MFD_CLOEXEC);
  }
  return physical->file >= 0 && ftruncate(physical->file, (off_t)physical->size) == 0;
}

SIM_API CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
  ENTER();
  struct physical *physical = physical_of(handle);
  const struct allocation *area = memory_find(pointer);
  NEED(physical != NULL && area != NULL && area->kind == MEMORY_RESERVED && flags == 0);
  NEED(size > 0 && is_aligned(pointer) && is_aligned(size) && is_aligned(offset));
  NEED(size <= area->size - (pointer - area->base) && offset <= physical->size && size <= physical->size - offset);
  struct mapping *mapping = calloc(1, sizeof *mapping);
  if (mapping == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  bool good = !is_mapped(pointer, size) && has_file(physical) &&
              mmap((void *)(uintptr_t)pointer, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->file,
                   (off_t)offset) != MAP_FAILED;
  if (good) {
    *mapping = (struct mapping){pointer, size, offset, physical, false, mappings};
    mappings = mapping;
    physical->mappings++;
  }
  pthread_mutex_unlock(&lock);
  if (!good) free(mapping);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Only whole mappings can be unmapped, as in the real driver. */
SIM_API CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  ENTER();
  NEED(size > 0);
  for (CUcontext context = context_next(NULL); context != NULL; context = context_next(context))
    context_synchronize(context);
  pthread_mutex_lock(&lock);
  for (struct mapping **at = &mappings; *at != NULL;) {
    struct mapping *mapping = *at;
    if (mapping->base < pointer || mapping->base + mapping->size > pointer + size) {
      at = &mapping->next;
      continue;
    }
    *at = mapping->next;
    mmap((void *)(uintptr_t)mapping->base, mapping->size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    mapping->physical->mappings--;
    drop(mapping->physical);
    free(mapping);
    result = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

SIM_API CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access, size_t count) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  ENTER();
  NEED(access != NULL && count > 0 && size > 0);
  bool readable = false, writable = false;
  for (size_t i = 0; i < count; i++) {
    readable = readable || access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    writable = writable || access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  int protection = (readable ? PROT_READ : PROT_NONE) | (writable ? PROT_WRITE : PROT_NONE);
  pthread_mutex_lock(&lock);
  for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
    if (!overlaps(mapping, pointer, size)) continue;
    mprotect((void *)(uintptr_t)mapping->base, mapping->size, protection);
    mapping->accessible = readable;
    result = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

SIM_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer) {
  ENTER();
  NEED(flags != NULL && location != NULL);
  pthread_mutex_lock(&lock);
  const struct mapping *mapping = mapping_at(pointer);
  *flags = mapping != NULL && mapping->accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  pthread_mutex_unlock(&lock);
  NEED(mapping != NULL);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  ENTER();
  NEED(handle != NULL);
  pthread_mutex_lock(&lock);
  const struct mapping *mapping = mapping_at((CUdeviceptr)(uintptr_t)address);
  if (mapping != NULL) {
    mapping->physical->handles++;
    *handle = handle_of(mapping->physical);
  }
  pthread_mutex_unlock(&lock);
  NEED(mapping != NULL);
  return CUDA_SUCCESS;
}

/* ---- export and import ---- */

SIM_API CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type, unsigned long long flags) {
  ENTER();
  struct physical *physical = physical_of(handle);
  NEED(shareable != NULL && physical != NULL && flags == 0);
  NEED(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  NEED(physical->properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (physical->device == CU_DEVICE_CPU) return CUDA_ERROR_NOT_SUPPORTED;
  int descriptor = sim_descriptor_make(driver.machine, (uint32_t)physical->object);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *(int *)shareable = descriptor;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                                CUmemAllocationHandleType type) {
  ENTER();
  NEED(handle != NULL && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  int number = sim_descriptor_object(driver.machine, (int)(intptr_t)shareable);
  NEED(number >= 0);
  const struct sim_object *object = &driver.machine->objects[number];
  CUdevice device = 0;
  while (driver_has(device) && driver.gpus[device] != object->gpu)
    device++;
  NEED_DEVICE(device);
  NEED(sim_ledger_hold(driver.machine, driver.process, (uint32_t)number, object->id));
  struct physical *physical = make(object->bytes, device);
  if (physical == NULL) {
    sim_ledger_drop(driver.machine, driver.process, (uint32_t)number);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->object = number;
  physical->properties = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  *handle = handle_of(physical);
  return CUDA_SUCCESS;
}
