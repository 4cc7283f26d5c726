#include "array.h"
#include "call_pairs.h"
#include "capture.h"
#include "context.h"
#include "pool.h"
#include "task.h"

/* Linear and rectangular copies. Every call is converted to one of these two. */
static CUresult submit(CUstream handle, const struct copy *copy, bool wait) {
  CUstream stream;
  if (wait) TRY(capture_forbids());
  TRY(stream_resolve(handle, &stream));
  struct task task = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *copy};
  TRY(task_submit(stream, &task));
  return wait ? stream_wait(stream) : CUDA_SUCCESS;
}

static CUresult row(CUstream handle, CUdeviceptr to, CUdeviceptr from, size_t size, bool wait) {
  if (size == 0) return CUDA_SUCCESS;
  NEED(to != 0 && from != 0);
  struct copy copy = copy_of_row(to, from, size);
  copy.stated = (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                   .srcDevice = from,
                                   .srcPitch = size,
                                   .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                   .dstDevice = to,
                                   .dstPitch = size,
                                   .WidthInBytes = size,
                                   .Height = 1,
                                   .Depth = 1};
  return submit(handle, &copy, wait);
}

static CUresult box(CUstream handle, const CUDA_MEMCPY3D_v2 *stated, bool wait) {
  struct copy copy;
  TRY(copy_of_box(stated, &copy));
  return submit(handle, &copy, wait);
}

static CUdeviceptr host(const void *pointer) {
  return (CUdeviceptr)(uintptr_t)pointer;
}

static CUresult in_array(CUarray array, size_t offset, CUdeviceptr *address) {
  TRY(array_check(array));
  *address = array->base + offset;
  return CUDA_SUCCESS;
}

static CUDA_MEMCPY3D_v2 deep(const CUDA_MEMCPY2D_v2 *flat) {
  return (CUDA_MEMCPY3D_v2){.srcXInBytes = flat->srcXInBytes,
                            .srcY = flat->srcY,
                            .srcMemoryType = flat->srcMemoryType,
                            .srcHost = flat->srcHost,
                            .srcDevice = flat->srcDevice,
                            .srcArray = flat->srcArray,
                            .srcPitch = flat->srcPitch,
                            .dstXInBytes = flat->dstXInBytes,
                            .dstY = flat->dstY,
                            .dstMemoryType = flat->dstMemoryType,
                            .dstHost = flat->dstHost,
                            .dstDevice = flat->dstDevice,
                            .dstArray = flat->dstArray,
                            .dstPitch = flat->dstPitch,
                            .WidthInBytes = flat->WidthInBytes,
                            .Height = flat->Height,
                            .Depth = 1};
}

static CUDA_MEMCPY3D_v2 of_peers(const CUDA_MEMCPY3D_PEER *peers) {
  return (CUDA_MEMCPY3D_v2){.srcXInBytes = peers->srcXInBytes,
                            .srcY = peers->srcY,
                            .srcZ = peers->srcZ,
                            .srcMemoryType = peers->srcMemoryType,
                            .srcHost = peers->srcHost,
                            .srcDevice = peers->srcDevice,
                            .srcArray = peers->srcArray,
                            .srcPitch = peers->srcPitch,
                            .srcHeight = peers->srcHeight,
                            .dstXInBytes = peers->dstXInBytes,
                            .dstY = peers->dstY,
                            .dstZ = peers->dstZ,
                            .dstMemoryType = peers->dstMemoryType,
                            .dstHost = peers->dstHost,
                            .dstDevice = peers->dstDevice,
                            .dstArray = peers->dstArray,
                            .dstPitch = peers->dstPitch,
                            .dstHeight = peers->dstHeight,
                            .WidthInBytes = peers->WidthInBytes,
                            .Height = peers->Height,
                            .Depth = peers->Depth};
}

static CUresult flat_box(CUstream handle, const CUDA_MEMCPY2D_v2 *stated, bool wait) {
  NEED(stated != NULL);
  CUDA_MEMCPY3D_v2 copy = deep(stated);
  return box(handle, &copy, wait);
}

static CUresult deep_box(CUstream handle, const CUDA_MEMCPY3D_v2 *stated, bool wait) {
  NEED(stated != NULL);
  return box(handle, stated, wait);
}

static CUresult peer_box(CUstream handle, const CUDA_MEMCPY3D_PEER *stated, bool wait) {
  NEED(stated != NULL);
  CUDA_MEMCPY3D_v2 copy = of_peers(stated);
  return box(handle, &copy, wait);
}

static CUresult to_array(CUstream handle, CUarray to, size_t offset, CUdeviceptr from, size_t size, bool wait) {
  CUdeviceptr address;
  TRY(in_array(to, offset, &address));
  return row(handle, address, from, size, wait);
}

static CUresult from_array(CUstream handle, CUdeviceptr to, CUarray from, size_t offset, size_t size, bool wait) {
  CUdeviceptr address;
  TRY(in_array(from, offset, &address));
  return row(handle, to, address, size, wait);
}

static CUresult between_arrays(CUstream handle, CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                               size_t size) {
  CUdeviceptr address;
  TRY(in_array(from, from_offset, &address));
  return to_array(handle, to, to_offset, address, size, true);
}

// clang-format off
WAITING(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size), row(s, to, from, size, true))
WAITING(cuMemcpyPeer, (CUdeviceptr to, CUcontext target, CUdeviceptr from, CUcontext source, size_t size),
        (to, target, from, source, size), ((void)target, (void)source, row(s, to, from, size, true)))
WAITING(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size), (to, from, size), row(s, to, host(from), size, true))
WAITING(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size), (to, from, size), row(s, host(to), from, size, true))
WAITING(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size), row(s, to, from, size, true))
WAITING(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t size), (to, offset, from, size),
        to_array(s, to, offset, from, size, true))
WAITING(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t size), (to, from, offset, size),
        from_array(s, to, from, offset, size, true))
WAITING(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t size), (to, offset, from, size),
        to_array(s, to, offset, host(from), size, true))
WAITING(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t size), (to, from, offset, size),
        from_array(s, host(to), from, offset, size, true))
WAITING(cuMemcpyAtoA_v2, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size),
        (to, to_offset, from, from_offset, size), between_arrays(s, to, to_offset, from, from_offset, size))
WAITING(cuMemcpy2D_v2, (const CUDA_MEMCPY2D_v2 *copy), (copy), flat_box(s, copy, true))
WAITING(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D_v2 *copy), (copy), flat_box(s, copy, true))
WAITING(cuMemcpy3D_v2, (const CUDA_MEMCPY3D_v2 *copy), (copy), deep_box(s, copy, true))
WAITING(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy), (copy), peer_box(s, copy, true))

QUEUED(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size), row(s, to, from, size, false))
QUEUED(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext target, CUdeviceptr from, CUcontext source, size_t size),
       (to, target, from, source, size), ((void)target, (void)source, row(s, to, from, size, false)))
QUEUED(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size), (to, from, size), row(s, to, host(from), size, false))
QUEUED(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size), (to, from, size), row(s, host(to), from, size, false))
QUEUED(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size), row(s, to, from, size, false))
QUEUED(cuMemcpyHtoAAsync_v2, (CUarray to, size_t offset, const void *from, size_t size), (to, offset, from, size),
       to_array(s, to, offset, host(from), size, false))
QUEUED(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t offset, size_t size), (to, from, offset, size),
       from_array(s, host(to), from, offset, size, false))
QUEUED(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D_v2 *copy), (copy), flat_box(s, copy, false))
QUEUED(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D_v2 *copy), (copy), deep_box(s, copy, false))
QUEUED(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *copy), (copy), peer_box(s, copy, false))
// clang-format on

/* ---- batches ---- */

static CUresult rows(CUstream handle, const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes, size_t count,
                     size_t *failed) {
  NEED(to != NULL && from != NULL && sizes != NULL && count > 0 && stream_is_not_legacy(handle));
  for (size_t i = 0; i < count; i++) {
    CUresult result = row(handle, to[i], from[i], sizes[i], false);
    if (result != CUDA_SUCCESS && failed != NULL) *failed = i;
    TRY(result);
  }
  return CUDA_SUCCESS;
}

QUEUED(cuMemcpyBatchAsync,
       (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes, size_t *first,
        size_t number, size_t *failed),
       (to, from, sizes, count, attributes, first, number, failed),
       ((void)attributes, (void)first, (void)number, rows(s, to, from, sizes, count, failed)))
QUEUED(cuMemcpyBatchAsync_v2,
       (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes, size_t *first,
        size_t number),
       (to, from, sizes, count, attributes, first, number),
       ((void)attributes, (void)first, (void)number, rows(s, to, from, sizes, count, NULL)))
QUEUED(cuMemcpyWithAttributesAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUmemcpyAttributes *attributes),
       (to, from, size, attributes), ((void)attributes, row(s, to, from, size, false)))

/* ---- batches in three dimensions ---- */

static void place(const CUmemcpy3DOperand *operand, const CUextent3D *extent, CUmemorytype *type, CUdeviceptr *pointer,
                  size_t *pitch, size_t *height, CUarray *array) {
  if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    *type = CU_MEMORYTYPE_ARRAY;
    *array = operand->op.array.array;
    return;
  }
  *type = CU_MEMORYTYPE_UNIFIED;
  *pointer = operand->op.ptr.ptr;
  *pitch = operand->op.ptr.rowLength != 0 ? operand->op.ptr.rowLength : extent->width;
  *height = operand->op.ptr.layerHeight != 0 ? operand->op.ptr.layerHeight : extent->height;
}

/* Elements of arrays have one byte here. */
static CUresult operands(CUstream handle, const CUDA_MEMCPY3D_BATCH_OP *one) {
  NEED(one != NULL && one->extent.width > 0 && one->extent.height > 0 && one->extent.depth > 0);
  NEED(one->src.type == CU_MEMCPY_OPERAND_TYPE_POINTER || one->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY);
  NEED(one->dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER || one->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY);
  CUDA_MEMCPY3D_v2 copy = {.WidthInBytes = one->extent.width, .Height = one->extent.height, .Depth = one->extent.depth};
  place(&one->src, &one->extent, &copy.srcMemoryType, &copy.srcDevice, &copy.srcPitch, &copy.srcHeight, &copy.srcArray);
  place(&one->dst, &one->extent, &copy.dstMemoryType, &copy.dstDevice, &copy.dstPitch, &copy.dstHeight, &copy.dstArray);
  return deep_box(handle, &copy, false);
}

static CUresult each_of(CUstream handle, const CUDA_MEMCPY3D_BATCH_OP *list, size_t count, size_t *failed) {
  NEED(list != NULL && count > 0 && stream_is_not_legacy(handle));
  for (size_t i = 0; i < count; i++) {
    CUresult result = operands(handle, &list[i]);
    if (result != CUDA_SUCCESS && failed != NULL) *failed = i;
    TRY(result);
  }
  return CUDA_SUCCESS;
}

QUEUED(cuMemcpy3DBatchAsync, (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags),
       (count, list, failed, flags), ((void)flags, each_of(s, list, count, failed)))
QUEUED(cuMemcpy3DBatchAsync_v2, (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags),
       (count, list, flags), ((void)flags, each_of(s, list, count, NULL)))
QUEUED(cuMemcpy3DWithAttributesAsync, (CUDA_MEMCPY3D_BATCH_OP * one, unsigned long long flags), (one, flags),
       ((void)flags, operands(s, one)))

/* ---- copies over a fabric: there is none, so only those between addresses ---- */

static CUresult between_addresses(CUstream handle, const CUDA_FABRIC_COPY_BATCH_OP *list, size_t count) {
  NEED(list != NULL && count > 0);
  for (size_t i = 0; i < count; i++) {
    bool is_local = list[i].src.type == CU_FABRIC_COPY_OPERAND_TYPE_POINTER &&
                    list[i].dst.type == CU_FABRIC_COPY_OPERAND_TYPE_POINTER;
    if (!is_local) return CUDA_ERROR_NOT_SUPPORTED;
    if (list[i].size > 0) TRY(row(handle, list[i].dst.op.ptr.ptr, list[i].src.op.ptr.ptr, list[i].size, false));
  }
  return CUDA_SUCCESS;
}

QUEUED(cuFabricCpyBatchAsync, (size_t count, CUDA_FABRIC_COPY_BATCH_OP *list, unsigned long long flags),
       (count, list, flags), ((void)flags, between_addresses(s, list, count)))
