#include "copy.h"

#include "array.h"
#include "memory.h"

#include <string.h>

enum { KEPT_FILL = 256 << 20 }; /* larger fills are not executed: a GPU has more memory than this machine */

static bool is_host(CUdeviceptr address) {
  const struct allocation *allocation = memory_find(address);
  return allocation == NULL || allocation->kind == MEMORY_HOST || allocation->kind == MEMORY_REGISTERED;
}

struct copy copy_of_row(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return (struct copy){.from = {.base = from, .host = is_host(from)},
                       .to = {.base = to, .host = is_host(to)},
                       .width = size,
                       .height = 1,
                       .depth = 1};
}

static CUresult side_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, size_t x, size_t y,
                        size_t z, size_t pitch, size_t height, const CUDA_MEMCPY3D_v2 *stated, struct copy_side *side) {
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    *side = (struct copy_side){.base = (CUdeviceptr)(uintptr_t)host, .pitch = pitch, .host = true};
    break;
  case CU_MEMORYTYPE_DEVICE:
    *side = (struct copy_side){.base = device, .pitch = pitch};
    break;
  case CU_MEMORYTYPE_UNIFIED:
    *side = (struct copy_side){.base = device, .pitch = pitch, .host = is_host(device)};
    break;
  case CU_MEMORYTYPE_ARRAY:
    TRY(array_check(array));
    *side = (struct copy_side){.base = array->base, .pitch = array->pitch};
    height = array->rows;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (side->pitch == 0) side->pitch = stated->WidthInBytes;
  NEED(side->base != 0 && side->pitch >= stated->WidthInBytes);
  side->slice = side->pitch * (height == 0 ? stated->Height : height);
  side->base += x + y * side->pitch + z * side->slice;
  return CUDA_SUCCESS;
}

CUresult copy_of_box(const CUDA_MEMCPY3D_v2 *stated, struct copy *copy) {
  TRY(side_of(stated->srcMemoryType, stated->srcHost, stated->srcDevice, stated->srcArray, stated->srcXInBytes,
              stated->srcY, stated->srcZ, stated->srcPitch, stated->srcHeight, stated, &copy->from));
  TRY(side_of(stated->dstMemoryType, stated->dstHost, stated->dstDevice, stated->dstArray, stated->dstXInBytes,
              stated->dstY, stated->dstZ, stated->dstPitch, stated->dstHeight, stated, &copy->to));
  copy->width = stated->WidthInBytes;
  copy->height = stated->Height;
  copy->depth = stated->Depth;
  copy->stated = *stated;
  return CUDA_SUCCESS;
}

static CUresult move_row(const struct copy *copy, size_t y, size_t z) {
  CUdeviceptr from = copy->from.base + y * copy->from.pitch + z * copy->from.slice;
  CUdeviceptr to = copy->to.base + y * copy->to.pitch + z * copy->to.slice;
  NEED(memory_holds(from, copy->width) && memory_holds(to, copy->width));
  /* If neither side was ever accessed by the host, both contain zeroes. */
  if (space_has(from) && space_has(to) && !space_is_committed(from, copy->width) &&
      !space_is_committed(to, copy->width))
    return CUDA_SUCCESS;
  NEED(memory_commit(from, copy->width) && memory_commit(to, copy->width));
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, copy->width);
  return CUDA_SUCCESS;
}

static uint64_t duration_ns(uint64_t bytes, uint64_t bytes_per_us) {
  return bytes * 1000 / bytes_per_us + 1000;
}

CUresult copy_push(CUstream stream, const struct copy *copy) {
  const struct sim_node *node = &driver.machine->node;
  uint64_t bytes = (uint64_t)copy->width * copy->height * copy->depth;
  if (bytes == 0) return CUDA_SUCCESS;
  for (size_t z = 0; z < copy->depth; z++)
    for (size_t y = 0; y < copy->height; y++)
      TRY(move_row(copy, y, z));
  struct sim_op op = {.kind = SIM_COPY};
  if (copy->from.host != copy->to.host) {
    op.engine = copy->to.host ? SIM_TO_HOST : SIM_TO_DEVICE;
    op.work = duration_ns(bytes, node->copy_bytes_per_us);
  } else {
    /* A copy within the GPU runs as a kernel that occupies all SMs while it waits for memory. */
    op.kind = SIM_KERNEL;
    op.width = stream->context->board->model.sms;
    op.work = duration_ns(2 * bytes, node->fill_bytes_per_us) * op.width;
  }
  stream_push(stream, &op);
  return CUDA_SUCCESS;
}

static void write_row(void *to, const struct fill *fill) {
  unsigned char *byte = to;
  if (fill->element == 1) {
    memset(to, (int)fill->value, fill->width);
    return;
  }
  for (size_t i = 0; i < fill->width; i++)
    memcpy(byte + i * fill->element, &fill->value, fill->element);
}

CUresult fill_push(CUstream stream, const struct fill *fill) {
  uint64_t bytes = (uint64_t)fill->width * fill->element * fill->height;
  if (bytes == 0) return CUDA_SUCCESS;
  NEED(fill->height == 1 || fill->pitch >= fill->width * fill->element);
  for (size_t y = 0; y < fill->height && bytes <= KEPT_FILL; y++) {
    CUdeviceptr to = fill->to + y * fill->pitch;
    NEED(memory_holds(to, fill->width * fill->element));
    if (fill->value == 0 && space_has(to) && !space_is_committed(to, fill->width * fill->element)) continue;
    NEED(memory_commit(to, fill->width * fill->element));
    write_row((void *)(uintptr_t)to, fill);
  }
  struct sim_op op = {.kind = SIM_KERNEL, .width = stream->context->board->model.sms};
  op.work = duration_ns(bytes, driver.machine->node.fill_bytes_per_us) * op.width;
  stream_push(stream, &op);
  return CUDA_SUCCESS;
}
