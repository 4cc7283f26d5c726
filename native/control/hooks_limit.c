/*
 * Limits of a context for which the driver takes memory: the heap of kernels, the buffer of their printf, and their
 * stacks, of which there is one for each thread that can be at work. What a context has of them from the beginning is
 * part of what it costs itself.
 */
#include "control.h"
#include "devices.h"
#include "driver.h"
#include "memory.h"

/* Bytes of the GPU for one of the limit; 0: it takes none. */
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

/* Contexts are structures of the driver: their addresses leave room for the number of a limit. */
static uint64_t key_of(CUcontext context, CUlimit limit) {
  return (uint64_t)context + limit + 1;
}

/* Gives back what a lower limit frees, or remembers the reservation for what a higher one takes. */
static bool settle(const struct memory_reservation *reservation, CUcontext context, CUlimit limit, uint64_t less) {
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
  int device = devices_current(&context);
  uint64_t each = device < 0 ? 0 : weight(limit);
  if (each == 0 || driver.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS) return driver.cuCtxSetLimit(limit, value);
  struct memory_reservation reservation;
  uint64_t more = value > before ? memory_product(value - before, each) : 0;
  if (!memory_reserve(&reservation, device, more, VGPU_DENIED_CONTEXT)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver.cuCtxSetLimit(limit, value);
  if (result != CUDA_SUCCESS) {
    memory_cancel(&reservation);
    return result;
  }
  /* The driver may round, or not go as far as it was asked to. */
  if (driver.cuCtxGetLimit(&after, limit) != CUDA_SUCCESS) after = value;
  memory_commit(&reservation, after > before ? memory_product(after - before, each) : 0, VGPU_DENIED_CONTEXT);
  if (settle(&reservation, context, limit, after < before ? memory_product(before - after, each) : 0)) return result;
  driver.cuCtxSetLimit(limit, before);
  memory_cancel(&reservation);
  return CUDA_ERROR_OUT_OF_MEMORY;
}
