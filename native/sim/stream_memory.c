#include "capture.h"
#include "host_function.h"

/* Stream operations that write words of memory or wait for their values. */

static CUresult resolve(CUstream handle, CUdeviceptr address, size_t size, CUstream *stream) {
  NEED(address != 0 && address % size == 0);
  TRY(stream_resolve(handle, stream));
  return capture_is_active(*stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

#define WAIT_FLAGS ((unsigned int)(CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH))

static CUresult wait_for(CUstream handle, CUdeviceptr address, uint64_t value, bool wide, unsigned int flags) {
  CUstream stream;
  NEED((flags & ~WAIT_FLAGS) == 0);
  TRY(resolve(handle, address, wide ? 8 : 4, &stream));
  return host_value_wait(stream, address, value, wide, flags);
}

static CUresult write(CUstream handle, CUdeviceptr address, uint64_t value, bool wide, unsigned int flags) {
  CUstream stream;
  NEED((flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) == 0);
  TRY(resolve(handle, address, wide ? 8 : 4, &stream));
  return host_value_write(stream, address, value, wide);
}

/* Four variants of each call: old and new, each for both default streams. */
#define WORD_CALL(name, word, call, wide)                                                                              \
  SIM_API CUresult name(CUstream stream, CUdeviceptr address, word value, unsigned int flags) {                        \
    ENTER();                                                                                                           \
    return call(stream, address, value, wide, flags);                                                                  \
  }                                                                                                                    \
  PER_THREAD_SZ(name, (CUstream stream, CUdeviceptr address, word value, unsigned int flags), own_stream(stream),      \
                address, value, flags)

// clang-format off
WORD_CALL(cuStreamWaitValue32, cuuint32_t, wait_for, false)
WORD_CALL(cuStreamWaitValue32_v2, cuuint32_t, wait_for, false)
WORD_CALL(cuStreamWaitValue64, cuuint64_t, wait_for, true)
WORD_CALL(cuStreamWaitValue64_v2, cuuint64_t, wait_for, true)
WORD_CALL(cuStreamWriteValue32, cuuint32_t, write, false)
WORD_CALL(cuStreamWriteValue32_v2, cuuint32_t, write, false)
WORD_CALL(cuStreamWriteValue64, cuuint64_t, write, true)
WORD_CALL(cuStreamWriteValue64_v2, cuuint64_t, write, true)
// clang-format on

static CUresult submit_one(CUstream stream, const CUstreamBatchMemOpParams *p) {
  switch (p->operation) {
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    return wait_for(stream, p->waitValue.address, p->waitValue.value, false, p->waitValue.flags);
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    return wait_for(stream, p->waitValue.address, p->waitValue.value64, true, p->waitValue.flags);
  case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    return write(stream, p->writeValue.address, p->writeValue.value, false, p->writeValue.flags);
  case CU_STREAM_MEM_OP_WRITE_VALUE_64:
    return write(stream, p->writeValue.address, p->writeValue.value64, true, p->writeValue.flags);
  case CU_STREAM_MEM_OP_BARRIER:
  case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations,
                                       unsigned int flags) {
  ENTER();
  NEED(count > 0 && count <= 256 && operations != NULL && flags == 0);
  for (unsigned int i = 0; i < count; i++)
    TRY(submit_one(stream, &operations[i]));
  return CUDA_SUCCESS;
}
PER_THREAD_SZ(cuStreamBatchMemOp_v2,
              (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags),
              own_stream(stream), count, operations, flags)

SIM_API CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations,
                                    unsigned int flags) {
  return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}
PER_THREAD_SZ(cuStreamBatchMemOp,
              (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations, unsigned int flags),
              own_stream(stream), count, operations, flags)
