/* Copies whose source and destination are given by addresses or structures. Copies within a GPU or between GPUs run on
 * the SMs and are paced like kernels. Copies from and to the host use copy engines and are not paced. */
#include "devices.h"
#include "driver.h"
#include "gate.h"
#include "magnitude.h"

/* Kinds of copies that need a separate cost; hooks_fill.c has the others. */
enum { ROW = 0x40, PEERS, TO_ARRAY, FROM_ARRAY, ARRAYS, FLAT, DEEP, DEEP_PEERS, OPERANDS };

#define KEY(what, bytes) launch_key(what, magnitude(bytes), 0x636f7079, 0)
#define OF_THREAD(stream) capture_stream(stream, true)

/* The address itself determines whether it is host or device memory, regardless of the name of the call. */
#define HOST(pointer) devices_hold((CUdeviceptr)(pointer))
#define EITHER(to, from) (devices_hold(to) && devices_hold(from))

static bool side(CUmemorytype type, const void *host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_HOST) return devices_hold((CUdeviceptr)host);
  return type != CU_MEMORYTYPE_UNIFIED || devices_hold(device);
}

#define BOX(copy)                                                                                                      \
  ((copy) != NULL && side((copy)->dstMemoryType, (copy)->dstHost, (copy)->dstDevice) &&                                \
   side((copy)->srcMemoryType, (copy)->srcHost, (copy)->srcDevice))
#define PLANE(copy) ((uint64_t)(copy)->WidthInBytes * (copy)->Height)
#define VOLUME(copy) (PLANE(copy) * (copy)->Depth)

#define FROM_UNIFIED(name, stream_parameter, stream_argument, stream)                                                  \
  GATED_WHERE(EITHER(to, from), name, (CUdeviceptr to, CUdeviceptr from, size_t bytes stream_parameter),               \
              (to, from, bytes stream_argument), KEY(ROW, bytes), stream)
#define NO_STREAM
#define STREAM_PARAMETER , CUstream stream
#define STREAM_ARGUMENT , stream

FROM_UNIFIED(cuMemcpy, NO_STREAM, NO_STREAM, NULL)
FROM_UNIFIED(cuMemcpy_ptds, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
FROM_UNIFIED(cuMemcpyAsync, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
FROM_UNIFIED(cuMemcpyAsync_ptsz, STREAM_PARAMETER, STREAM_ARGUMENT, OF_THREAD(stream))

#define FROM_PEER(name, stream_parameter, stream_argument, stream)                                                     \
  GATED_WHERE(EITHER(to, from), name,                                                                                  \
              (CUdeviceptr to, CUcontext into, CUdeviceptr from, CUcontext out_of, size_t bytes stream_parameter),     \
              (to, into, from, out_of, bytes stream_argument), KEY(PEERS, bytes), stream)

FROM_PEER(cuMemcpyPeer, NO_STREAM, NO_STREAM, NULL)
FROM_PEER(cuMemcpyPeer_ptds, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
FROM_PEER(cuMemcpyPeerAsync, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
FROM_PEER(cuMemcpyPeerAsync_ptsz, STREAM_PARAMETER, STREAM_ARGUMENT, OF_THREAD(stream))

/* Calls for host memory also accept device addresses. */
#define WITH_HOST(name, pointer, size, stream_parameter, stream_argument, stream)                                      \
  GATED_WHERE(HOST(from), cuMemcpyHtoD##name, (pointer to, const void *from, size bytes stream_parameter),             \
              (to, from, bytes stream_argument), KEY(ROW, bytes), stream)                                              \
  GATED_WHERE(HOST(to), cuMemcpyDtoH##name, (void *to, pointer from, size bytes stream_parameter),                     \
              (to, from, bytes stream_argument), KEY(ROW, bytes), stream)

WITH_HOST(, CUdeviceptr_v1, unsigned int, NO_STREAM, NO_STREAM, NULL)
WITH_HOST(_v2, CUdeviceptr, size_t, NO_STREAM, NO_STREAM, NULL)
WITH_HOST(_v2_ptds, CUdeviceptr, size_t, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
WITH_HOST(Async, CUdeviceptr_v1, unsigned int, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
WITH_HOST(Async_v2, CUdeviceptr, size_t, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
WITH_HOST(Async_v2_ptsz, CUdeviceptr, size_t, STREAM_PARAMETER, STREAM_ARGUMENT, OF_THREAD(stream))

#define WITH_HOST_ARRAY(name, size, stream_parameter, stream_argument, stream)                                         \
  GATED_WHERE(HOST(from), cuMemcpyHtoA##name, (CUarray to, size at, const void *from, size bytes stream_parameter),    \
              (to, at, from, bytes stream_argument), KEY(TO_ARRAY, bytes), stream)                                     \
  GATED_WHERE(HOST(to), cuMemcpyAtoH##name, (void *to, CUarray from, size at, size bytes stream_parameter),            \
              (to, from, at, bytes stream_argument), KEY(FROM_ARRAY, bytes), stream)

WITH_HOST_ARRAY(, unsigned int, NO_STREAM, NO_STREAM, NULL)
WITH_HOST_ARRAY(_v2, size_t, NO_STREAM, NO_STREAM, NULL)
WITH_HOST_ARRAY(_v2_ptds, size_t, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
WITH_HOST_ARRAY(Async, unsigned int, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
WITH_HOST_ARRAY(Async_v2, size_t, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
WITH_HOST_ARRAY(Async_v2_ptsz, size_t, STREAM_PARAMETER, STREAM_ARGUMENT, OF_THREAD(stream))

#define OF_ARRAYS(name, pointer, size, stream)                                                                         \
  GATED(cuMemcpyDtoA##name, (CUarray to, size at, pointer from, size bytes), (to, at, from, bytes),                    \
        KEY(TO_ARRAY, bytes), stream)                                                                                  \
  GATED(cuMemcpyAtoD##name, (pointer to, CUarray from, size at, size bytes), (to, from, at, bytes),                    \
        KEY(FROM_ARRAY, bytes), stream)                                                                                \
  GATED(cuMemcpyAtoA##name, (CUarray to, size at, CUarray from, size behind, size bytes),                              \
        (to, at, from, behind, bytes), KEY(ARRAYS, bytes), stream)

OF_ARRAYS(, CUdeviceptr_v1, unsigned int, NULL)
OF_ARRAYS(_v2, CUdeviceptr, size_t, NULL)
OF_ARRAYS(_v2_ptds, CUdeviceptr, size_t, OF_THREAD(NULL))

/* Rectangular copies in two and three dimensions, and between peers. */
#define OF_BOX(name, type, what, size, stream_parameter, stream_argument, stream)                                      \
  GATED_WHERE(BOX(copy), name, (const type *copy stream_parameter), (copy stream_argument), KEY(what, size(copy)),     \
              stream)

OF_BOX(cuMemcpy2D, CUDA_MEMCPY2D_v1, FLAT, PLANE, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy2D_v2, CUDA_MEMCPY2D, FLAT, PLANE, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, FLAT, PLANE, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
OF_BOX(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, FLAT, PLANE, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, FLAT, PLANE, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, FLAT, PLANE, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
OF_BOX(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, FLAT, PLANE, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
OF_BOX(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, FLAT, PLANE, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
OF_BOX(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, FLAT, PLANE, STREAM_PARAMETER, STREAM_ARGUMENT, OF_THREAD(stream))

OF_BOX(cuMemcpy3D, CUDA_MEMCPY3D_v1, DEEP, VOLUME, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy3D_v2, CUDA_MEMCPY3D, DEEP, VOLUME, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, DEEP, VOLUME, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
OF_BOX(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, DEEP, VOLUME, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
OF_BOX(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, DEEP, VOLUME, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
OF_BOX(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, DEEP, VOLUME, STREAM_PARAMETER, STREAM_ARGUMENT, OF_THREAD(stream))

OF_BOX(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, DEEP_PEERS, VOLUME, NO_STREAM, NO_STREAM, NULL)
OF_BOX(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, DEEP_PEERS, VOLUME, NO_STREAM, NO_STREAM, OF_THREAD(NULL))
OF_BOX(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, DEEP_PEERS, VOLUME, STREAM_PARAMETER, STREAM_ARGUMENT, stream)
OF_BOX(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, DEEP_PEERS, VOLUME, STREAM_PARAMETER, STREAM_ARGUMENT,
       OF_THREAD(stream))

/* The bytes of a batch that are copied within the GPU. */
static uint64_t within(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes, size_t count) {
  uint64_t bytes = 0;
  for (size_t i = 0; to != NULL && from != NULL && sizes != NULL && i < count; i++)
    if (EITHER(to[i], from[i])) bytes += sizes[i];
  return bytes;
}

#define OF_BATCH(name, failed_parameter, failed_argument, stream_)                                                     \
  GATED_WHERE(within(to, from, sizes, count) > 0, name,                                                                \
              (CUdeviceptr * to, CUdeviceptr * from, size_t * sizes, size_t count, CUmemcpyAttributes * attributes,    \
               size_t * first, size_t number failed_parameter, CUstream stream),                                       \
              (to, from, sizes, count, attributes, first, number failed_argument, stream),                             \
              KEY(ROW, within(to, from, sizes, count)), stream_)
#define FAILED_PARAMETER , size_t *failed
#define FAILED_ARGUMENT , failed

OF_BATCH(cuMemcpyBatchAsync, FAILED_PARAMETER, FAILED_ARGUMENT, stream)
OF_BATCH(cuMemcpyBatchAsync_ptsz, FAILED_PARAMETER, FAILED_ARGUMENT, OF_THREAD(stream))
OF_BATCH(cuMemcpyBatchAsync_v2, , , stream)
OF_BATCH(cuMemcpyBatchAsync_v2_ptsz, , , OF_THREAD(stream))

#define WITH_ATTRIBUTES(name, stream_)                                                                                 \
  GATED_WHERE(EITHER(to, from), name,                                                                                  \
              (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUmemcpyAttributes * attributes, CUstream stream),      \
              (to, from, bytes, attributes, stream), KEY(ROW, bytes), stream_)

WITH_ATTRIBUTES(cuMemcpyWithAttributesAsync, stream)
WITH_ATTRIBUTES(cuMemcpyWithAttributesAsync_ptsz, OF_THREAD(stream))

/* An array is on a GPU. */
static bool is_on_device(const CUmemcpy3DOperand *operand) {
  return operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER || devices_hold(operand->op.ptr.ptr);
}

/* The elements of a batch that are copied within the GPU. Their size depends on arrays, and the cost is measured. */
static uint64_t elements_within(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count) {
  uint64_t elements = 0;
  for (size_t i = 0; list != NULL && i < count; i++)
    if (is_on_device(&list[i].src) && is_on_device(&list[i].dst))
      elements += list[i].extent.width * list[i].extent.height * list[i].extent.depth;
  return elements;
}

#define OF_OPERANDS(name, parameters, arguments, count, stream_)                                                       \
  GATED_WHERE(elements_within(list, count) > 0, name, parameters, arguments,                                           \
              KEY(OPERANDS, elements_within(list, count)), stream_)
#define LIST size_t count, CUDA_MEMCPY3D_BATCH_OP *list
#define FLAGS unsigned long long flags, CUstream stream

OF_OPERANDS(cuMemcpy3DBatchAsync, (LIST, size_t *failed, FLAGS), (count, list, failed, flags, stream), count, stream)
OF_OPERANDS(cuMemcpy3DBatchAsync_ptsz, (LIST, size_t *failed, FLAGS), (count, list, failed, flags, stream), count,
            OF_THREAD(stream))
OF_OPERANDS(cuMemcpy3DBatchAsync_v2, (LIST, FLAGS), (count, list, flags, stream), count, stream)
OF_OPERANDS(cuMemcpy3DBatchAsync_v2_ptsz, (LIST, FLAGS), (count, list, flags, stream), count, OF_THREAD(stream))
OF_OPERANDS(cuMemcpy3DWithAttributesAsync, (CUDA_MEMCPY3D_BATCH_OP * list, FLAGS), (list, flags, stream), 1, stream)
OF_OPERANDS(cuMemcpy3DWithAttributesAsync_ptsz, (CUDA_MEMCPY3D_BATCH_OP * list, FLAGS), (list, flags, stream), 1,
            OF_THREAD(stream))

/* An endpoint is memory of another GPU. */
static bool is_on_gpu(const CUfabricCpyOperand *operand) {
  return operand->type != CU_FABRIC_COPY_OPERAND_TYPE_POINTER || devices_hold(operand->op.ptr.ptr);
}

static uint64_t bytes_between(const CUDA_FABRIC_COPY_BATCH_OP *list, size_t count) {
  uint64_t bytes = 0;
  for (size_t i = 0; list != NULL && i < count; i++)
    if (is_on_gpu(&list[i].src) && is_on_gpu(&list[i].dst)) bytes += list[i].size;
  return bytes;
}

#define OVER_FABRIC(name, stream_)                                                                                     \
  GATED_WHERE(bytes_between(list, count) > 0, name, (size_t count, CUDA_FABRIC_COPY_BATCH_OP * list, FLAGS),           \
              (count, list, flags, stream), KEY(PEERS, bytes_between(list, count)), stream_)

OVER_FABRIC(cuFabricCpyBatchAsync, stream)
OVER_FABRIC(cuFabricCpyBatchAsync_ptsz, OF_THREAD(stream))
