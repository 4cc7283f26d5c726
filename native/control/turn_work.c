#include "turn_work.h"
#include "capture.h"
#include "devices.h"
#include "driver.h"
#include "fork.h"
#include "lock.h"
#include "vgpu_abi.h"

#define STREAMS 16u
/* A charge that differs by less is not corrected: the program itself leaves small gaps. */
#define SETTLED_PART 20u
#define SETTLED_LEAST_NS 200000ull

/* The lock is held across queries and records of the driver, so that no other thread destroys the stream meanwhile. */
static struct {
  struct lock lock;
  uint32_t count;
  CUstream streams[STREAMS];
  uint64_t charged_ns;
  bool timed;        /* `began` was recorded before the first launch */
  CUcontext context; /* of the events; NULL: there are none */
  CUevent began, ended;
} works[VGPU_MAX_DEVICES];

static bool have_events(uint32_t device, CUstream stream) {
  CUcontext current = NULL, context = devices_stream_context(stream);
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL || current != context) return false;
  if (works[device].context == context) return true;
  if (works[device].context != NULL) return false;
  if (driver.cuEventCreate(&works[device].began, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  if (driver.cuEventCreate(&works[device].ended, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    driver.cuEventDestroy_v2(works[device].began);
    return false;
  }
  works[device].context = context;
  return true;
}

static void note_stream(uint32_t device, CUstream stream) {
  for (uint32_t i = 0; i < works[device].count; i++)
    if (works[device].streams[i] == stream) return;
  if (works[device].count < STREAMS) works[device].streams[works[device].count++] = stream;
}

void turn_work_add(uint32_t device, CUstream stream, uint64_t gpu_ns) {
  lock_take(&works[device].lock);
  if (works[device].count == 0) {
    works[device].charged_ns = 0;
    works[device].timed = captures == 0 && have_events(device, stream) &&
                          driver.cuEventRecord(works[device].began, stream) == CUDA_SUCCESS;
  }
  works[device].charged_ns += gpu_ns;
  note_stream(device, stream);
  lock_release(&works[device].lock);
}

bool turn_work_runs(uint32_t device) {
  bool runs = false;
  if (captures != 0) return false;
  lock_take(&works[device].lock);
  for (uint32_t i = 0; i < works[device].count && !runs; i++)
    runs = driver.cuStreamQuery(works[device].streams[i]) == CUDA_ERROR_NOT_READY;
  lock_release(&works[device].lock);
  return runs;
}

void turn_work_last(uint32_t device) {
  lock_take(&works[device].lock);
  if (works[device].timed)
    works[device].timed = captures == 0 && works[device].count == 1 &&
                          driver.cuEventRecord(works[device].ended, works[device].streams[0]) == CUDA_SUCCESS;
  lock_release(&works[device].lock);
}

int64_t turn_work_excess(uint32_t device) {
  float took_ms = 0;
  lock_take(&works[device].lock);
  bool timed = works[device].timed &&
               driver.cuEventElapsedTime(&took_ms, works[device].began, works[device].ended) == CUDA_SUCCESS;
  int64_t charged_ns = (int64_t)works[device].charged_ns;
  works[device].timed = false;
  lock_release(&works[device].lock);
  if (!timed || took_ms <= 0) return 0;
  int64_t excess = (int64_t)((double)took_ms * 1e6) - charged_ns;
  int64_t least =
      charged_ns / SETTLED_PART > (int64_t)SETTLED_LEAST_NS ? charged_ns / SETTLED_PART : (int64_t)SETTLED_LEAST_NS;
  return excess < least && excess > -least ? 0 : excess;
}

void turn_work_clear(uint32_t device) {
  lock_take(&works[device].lock);
  works[device].count = 0;
  lock_release(&works[device].lock);
}

void turn_work_drop_stream(CUstream stream) {
  for (uint32_t device = 0; device < VGPU_MAX_DEVICES; device++) {
    lock_take(&works[device].lock);
    for (uint32_t i = 0; i < works[device].count; i++) {
      if (works[device].streams[i] != stream) continue;
      works[device].streams[i] = works[device].streams[--works[device].count];
      works[device].timed = false;
      break;
    }
    lock_release(&works[device].lock);
  }
}

void turn_work_drop_context(CUcontext context) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++) {
    lock_take(&works[i].lock);
    /* Some of the streams may be the context's. */
    works[i].count = 0;
    works[i].timed = false;
    if (works[i].context == context) {
      driver.cuEventDestroy_v2(works[i].began);
      driver.cuEventDestroy_v2(works[i].ended);
      works[i].context = NULL;
    }
    lock_release(&works[i].lock);
  }
}

/* The launches are the parent's. */
static void reset(void) {
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++) {
    works[i].lock.taken = 0;
    works[i].count = 0;
    works[i].context = NULL;
    works[i].timed = false;
  }
}
AFTER_FORK(reset)
