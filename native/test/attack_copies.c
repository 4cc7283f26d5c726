#include "gpu.h"

/* The simulated GPU copies 700,000 MB/s within device memory, and each byte is read and written. */
#define BYTES (128 * MIB)
#define COPY_US 383
#define EACH 24

static struct vgpu_usage *usage;
static CUstream stream;
static CUdeviceptr from, to, small;
static char host[64 << 10];

static void unified(void) {
  OK(cuMemcpyAsync(to, from, BYTES, stream));
}
static void unified_per_thread(void) {
  OK(cuMemcpyAsync_ptsz(to, from, BYTES, NULL));
}
static void unified_waiting(void) {
  OK(cuMemcpy(to, from, BYTES));
}
static void peers(void) {
  OK(cuMemcpyPeerAsync(to, gpu_context, from, gpu_context, BYTES, stream));
}
static void peers_waiting(void) {
  OK(cuMemcpyPeer(to, gpu_context, from, gpu_context, BYTES));
}
static void as_host(void) {
  OK(cuMemcpyHtoDAsync_v2(to, (void *)from, BYTES, stream));
}
static void to_host(void) {
  OK(cuMemcpyDtoHAsync_v2((void *)to, from, BYTES, stream));
}

static const CUDA_MEMCPY2D *plane(CUmemorytype type) {
  static CUDA_MEMCPY2D copy;
  copy = (CUDA_MEMCPY2D){.srcMemoryType = type,
                         .srcDevice = from,
                         .srcPitch = 1 << 20,
                         .dstMemoryType = type,
                         .dstDevice = to,
                         .dstPitch = 1 << 20,
                         .WidthInBytes = 1 << 20,
                         .Height = BYTES >> 20};
  return &copy;
}
static void flat(void) {
  OK(cuMemcpy2DAsync_v2(plane(CU_MEMORYTYPE_DEVICE), stream));
}
static void flat_unified(void) {
  OK(cuMemcpy2D_v2(plane(CU_MEMORYTYPE_UNIFIED)));
}
static void deep(void) {
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = from,
                        .srcPitch = 1 << 20,
                        .srcHeight = 16,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = to,
                        .dstPitch = 1 << 20,
                        .dstHeight = 16,
                        .WidthInBytes = 1 << 20,
                        .Height = 16,
                        .Depth = BYTES >> 24};
  OK(cuMemcpy3DAsync_v2(&copy, stream));
}
static void batch(void) {
  CUdeviceptr targets[] = {to, to + BYTES / 2}, sources[] = {from, from + BYTES / 2};
  size_t sizes[] = {BYTES / 2, BYTES / 2}, first = 0, failed;
  OK(cuMemcpyBatchAsync(targets, sources, sizes, 2, NULL, &first, 1, &failed, stream));
}
static void batch_of_13(void) {
  CUdeviceptr targets[] = {to, to + BYTES / 2}, sources[] = {from, from + BYTES / 2};
  size_t sizes[] = {BYTES / 2, BYTES / 2}, first = 0;
  OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, NULL, &first, 1, stream));
}
static void with_attributes(void) {
  OK(cuMemcpyWithAttributesAsync(to, from, BYTES, NULL, stream));
}
static void over_fabric(void) {
  CUDA_FABRIC_COPY_BATCH_OP copy = {.src.type = CU_FABRIC_COPY_OPERAND_TYPE_POINTER,
                                    .src.op.ptr.ptr = from,
                                    .dst.type = CU_FABRIC_COPY_OPERAND_TYPE_POINTER,
                                    .dst.op.ptr.ptr = to,
                                    .size = BYTES};
  OK(cuFabricCpyBatchAsync(1, &copy, 0, stream));
}
static void from_host(void) {
  OK(cuMemcpyAsync(small, (CUdeviceptr)host, sizeof host, stream));
}
static void from_host_by_name(void) {
  OK(cuMemcpyHtoDAsync_v2(small, host, sizeof host, stream));
}

/* GPU time charged for one call after its cost was learned. */
static double charge_us(void (*call)(void)) {
  for (int i = 0; i < 10; i++) {
    call();
    OK(cuCtxSynchronize());
  }
  uint64_t charged = usage->devices[0].charged_ns;
  for (int i = 0; i < EACH; i++) {
    call();
    OK(cuCtxSynchronize());
  }
  return (double)(usage->devices[0].charged_ns - charged) / EACH / 1000;
}

int main(void) {
  TEST_BEGIN("attack: copies within the GPU are charged their duration, for every call and kind of address");
  TEST_NOT_WRAPPED("what copies cost is measured");
  static const struct {
    const char *name;
    void (*call)(void);
  } copies[] = {
      {"cuMemcpyAsync", unified},
      {"cuMemcpyAsync_ptsz", unified_per_thread},
      {"cuMemcpy", unified_waiting},
      {"cuMemcpyPeerAsync", peers},
      {"cuMemcpyPeer", peers_waiting},
      {"cuMemcpy2DAsync", flat},
      {"cuMemcpy2D, unified", flat_unified},
      {"cuMemcpy3DAsync", deep},
      {"cuMemcpyBatchAsync", batch},
      {"cuMemcpyBatchAsync_v2", batch_of_13},
      {"cuMemcpyWithAttributesAsync", with_attributes},
      {"cuFabricCpyBatchAsync", over_fabric},
      {"cuMemcpyHtoDAsync of an address of the GPU", as_host},
      {"cuMemcpyDtoHAsync to an address of the GPU", to_host},
  };
  sandbox_make();
  sandbox_limits(gpu_uuid(), 2048 * MIB, 99, 0);
  gpu_open();
  usage = sandbox_usage();
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc_v2(&from, BYTES));
  OK(cuMemAlloc_v2(&to, BYTES));
  OK(cuMemAlloc_v2(&small, sizeof host));
  /* Copies between host and GPU use copy engines and are not charged. */
  CHECK_EQ(charge_us(from_host), 0);
  CHECK_EQ(charge_us(from_host_by_name), 0);
  for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
    double got = charge_us(copies[i].call);
    /* A thread takes tokens for up to 0.5 ms in advance, so the sum over all calls may differ by that. */
    if (got < 0.8 * COPY_US || got > 1.4 * COPY_US)
      tap_fail(__FILE__, __LINE__, "%s is charged %.1f us, not %d", copies[i].name, got, COPY_US);
  }
  return TEST_END;
}
