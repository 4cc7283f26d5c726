#include "devices.h"
#include "control.h"
#include "driver.h"
#include "fork.h"
#include "lock.h"
#include "log.h"
#include <string.h>

#define MOST_ORDINALS 64
#define CONTEXTS 64u
#define STREAMS 256u

static struct lock matching;
static bool matched;
static int8_t index_of[MOST_ORDINALS];
static int8_t ordinal_of[VGPU_MAX_DEVICES];
static int8_t only = DEVICE_UNLISTED;
/* Caches: a handle and, in the top byte, index + 2. One word each, so that readers need no lock. 0: empty. */
static uint64_t contexts[CONTEXTS];
static uint64_t streams[STREAMS];

static void uuid_text(const CUuuid *uuid, const char *prefix, char *text) {
  static const char digits[] = "0123456789abcdef";
  size_t at = strlen(prefix);
  memcpy(text, prefix, at);
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = digits[(unsigned char)uuid->bytes[i] >> 4];
    text[at++] = digits[(unsigned char)uuid->bytes[i] & 15];
  }
  text[at] = '\0';
}

static int match(CUdevice device) {
  CUuuid uuid;
  char gpu[48], mig[48], pci[32];
  bool named =
      driver.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS || driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS;
  if (named) {
    uuid_text(&uuid, "MIG-", mig);
    uuid_text(&uuid, "GPU-", gpu);
    int index = limits_find_device(control.limits, mig, NULL);
    if (index < 0) index = limits_find_device(control.limits, gpu, NULL);
    if (index >= 0) return index;
  }
  /* CUDA prints a PCI domain of four digits, NVML one of eight. The limits file uses NVML's format. */
  char nvml[40] = "0000";
  if (driver.cuDeviceGetPCIBusId(pci, sizeof pci, device) != CUDA_SUCCESS) return DEVICE_UNLISTED;
  memcpy(nvml + 4, pci, strlen(pci) + 1);
  int index = limits_find_device(control.limits, NULL, nvml);
  /*
   * MIG instances of one GPU share its PCI address, so an address that belongs to another listed instance is no match.
   */
  bool other = index >= 0 && named && strncmp(control.limits->devices[index].uuid, "MIG-", 4) == 0;
  return other ? DEVICE_UNLISTED : index;
}

/* False: the driver does not list its devices. */
static bool match_all(void) {
  int count = 0;
  int listed = 0;
  memset(ordinal_of, -1, sizeof ordinal_of);
  memset(index_of, DEVICE_NONE, sizeof index_of);
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  if (count > MOST_ORDINALS) count = MOST_ORDINALS;
  for (int ordinal = 0; ordinal < count; ordinal++) {
    CUdevice device;
    if (driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS || device < 0 || device >= MOST_ORDINALS) continue;
    int index = match(device);
    index_of[device] = (int8_t)index;
    if (index < 0) continue;
    ordinal_of[index] = (int8_t)device;
    listed++;
  }
  if (listed == count) control_note(VGPU_TEST_DEVICES_MATCHED);
  if (listed < count) log_line(VGPU_LOG_WARNING, "some visible GPUs are not listed in the limits file", NULL);
  if (count == 1 && listed == 1) only = index_of[0];
  return true;
}

/* Runs once: libraries call cuInit again while other threads already use the result. */
void devices_match(void) {
  lock_take(&matching);
  if (!matched) matched = match_all();
  lock_release(&matching);
}

int devices_index(CUdevice device) {
  return device >= 0 && device < MOST_ORDINALS ? index_of[device] : DEVICE_NONE;
}

int devices_ordinal(uint32_t index) {
  return ordinal_of[index];
}

int devices_only(void) {
  return only;
}

#define PLACE(table, handle)                                                                                           \
  (&(table)[((uint64_t)(handle) >> 4) * 0x9e3779b97f4a7c15ull >> (64 - __builtin_ctz(sizeof(table) / sizeof *(table)))])

static uint64_t word_of(const void *handle, int index) {
  return ((uint64_t)handle & 0x00ffffffffffffffull) | (uint64_t)(index + 2) << 56;
}

static bool holds(uint64_t word, const void *handle) {
  return word << 8 == (uint64_t)handle << 8;
}

static void forget(uint64_t *place, const void *handle) {
  if (holds(__atomic_load_n(place, __ATOMIC_RELAXED), handle)) __atomic_store_n(place, 0, __ATOMIC_RELAXED);
}

/* Index of the device of `context`, which is current. */
static int current_index(CUcontext context) {
  uint64_t *place = PLACE(contexts, context);
  uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (holds(word, context)) return (int)(word >> 56) - 2;
  CUdevice device;
  /* A destroyed context can still be current. The driver rejects every call in it. */
  if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return DEVICE_NONE;
  int index = devices_index(device);
  __atomic_store_n(place, word_of(context, index), __ATOMIC_RELAXED);
  return index;
}

int devices_current(CUcontext *context) {
  *context = NULL;
  if (driver.cuCtxGetCurrent(context) != CUDA_SUCCESS || *context == NULL) return DEVICE_NONE;
  return only != DEVICE_UNLISTED ? only : current_index(*context);
}

/* The driver resolves these handles by the current context. */
static bool is_default(CUstream stream) {
  return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

CUcontext devices_stream_context(CUstream stream) {
  CUcontext context = NULL;
  if (!is_default(stream) && driver.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS) return context;
  return driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

int devices_of_context(CUcontext context) {
  CUcontext current;
  int index = devices_current(&current);
  if (context == NULL || context == current) return index;
  uint64_t word = __atomic_load_n(PLACE(contexts, context), __ATOMIC_RELAXED);
  if (holds(word, context)) return (int)(word >> 56) - 2;
  if (driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return DEVICE_NONE;
  index = current_index(context);
  driver.cuCtxPopCurrent_v2(&context);
  return index;
}

int devices_of_stream(CUstream stream) {
  CUcontext current;
  if (is_default(stream)) return devices_current(&current);
  if (only != DEVICE_UNLISTED) return only;
  uint64_t *place = PLACE(streams, stream);
  uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (__builtin_expect(holds(word, stream), 1)) return (int)(word >> 56) - 2;
  int index = devices_of_context(devices_stream_context(stream));
  if (index != DEVICE_NONE) __atomic_store_n(place, word_of(stream, index), __ATOMIC_RELAXED);
  return index;
}

bool devices_hold(CUdeviceptr pointer) {
  unsigned int type = 0;
  return driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE;
}

int devices_of_pointer(CUdeviceptr pointer) {
  int ordinal;
  CUcontext current;
  if (driver.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == CUDA_SUCCESS)
    return devices_index(ordinal);
  return devices_current(&current);
}

void devices_forget_stream(CUstream stream) {
  forget(PLACE(streams, stream), stream);
}

void devices_forget_streams(void) {
  for (uint32_t i = 0; i < STREAMS; i++)
    __atomic_store_n(&streams[i], 0, __ATOMIC_RELAXED);
}

void devices_forget_context(CUcontext context) {
  forget(PLACE(contexts, context), context);
  devices_forget_streams();
}

static void reset(void) {
  memset(contexts, 0, sizeof contexts);
  memset(streams, 0, sizeof streams);
  matching.taken = 0;
  matched = false;
}
AFTER_FORK(reset)
