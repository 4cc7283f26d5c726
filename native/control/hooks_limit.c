/* Limits of a context for which the driver allocates memory: the device heap, the printf buffer, and the stacks, one
 * per resident thread. The initial values are part of the context's own cost. */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"

/* Bytes of GPU memory per unit of the limit; 0: the limit allocates nothing. */
static uint64_t weight(CUlimit limit) {
  int multiprocessors = 0, threads = 0;
  CUdevice device;
  switch (limit) {
  case CU_LIMIT_PRINTF_FIFO_SIZE:
  case CU_LIMIT_MALLOC_HEAP_SIZE:
    return 1;
  case CU_LIMIT_STACK_SIZE:
    if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return 1;
    driver.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    driver.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
    return memory_product((uint64_t)multiprocessors, (uint64_t)threads);
  default:
    return 0;
  }
}

/* Contexts are structures of the driver, so small offsets from their addresses are unique keys. */
static uint64_t key_of(CUcontext context, CUlimit limit) {
  return (uint64_t)context + limit + 1;
}

/* Gives back what a lower limit frees, or adds the reservation to the entry of the limit. */
static bool update_entry(const struct memory_reservation *reservation, CUcontext context, CUlimit limit,
                         uint64_t less) {
  struct track_entry entry;
  if (!track_remove(TRACK_LIMIT, key_of(context, limit), &entry))
    entry = (struct track_entry){
        .key = key_of(context, limit),
        .link = (uint64_t)context,
        .kind = TRACK_LIMIT,
        .device = (uint16_t)reservation->device,
    };
  if (less > entry.bytes) less = entry.bytes;
  if (less > 0) ledger_give_back(&control.ledger, entry.device, less);
  entry.bytes = entry.bytes - less + reservation->bytes;
  return entry.bytes == 0 || track_add(&entry) == 0;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  CUcontext context;
  size_t before, after;
  if (!control_enforces()) return driver.cuCtxSetLimit(limit, value);
  int device = memory_charged(devices_current(&context));
  uint64_t each = device < 0 ? 0 : weight(limit);
  if (each == 0 || driver.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS) return driver.cuCtxSetLimit(limit, value);
  struct memory_reservation reservation;
  uint64_t more = value > before ? memory_product(value - before, each) : 0;
  if (!memory_reserve(&reservation, device, more, VGPU_DENIED_CONTEXT)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuCtxSetLimit(limit, value);
  if (result == CUDA_SUCCESS && reservation.device < 0) {
    driver.cuCtxSetLimit(limit, before);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result != CUDA_SUCCESS) {
    memory_cancel(&reservation);
    return result;
  }
  /* The driver may round the value, or apply less than requested. */
  if (driver.cuCtxGetLimit(&after, limit) != CUDA_SUCCESS) after = value;
  memory_commit(&reservation, after > before ? memory_product(after - before, each) : 0, VGPU_DENIED_CONTEXT);
  if (update_entry(&reservation, context, limit, after < before ? memory_product(before - after, each) : 0))
    return result;
  driver.cuCtxSetLimit(limit, before);
  memory_cancel(&reservation);
  return CUDA_ERROR_OUT_OF_MEMORY;
}
