#include "passing.h"
#include "sim.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static const size_t PIECE = 32 << 20;

static int exporter(int line) {
  CUmemPoolProps shareable = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool pool;
  CUdeviceptr pointers[3];
  CUmemPoolPtrExportData data;
  int descriptor;
  char word;
  sim_begin();
  OK(cuMemPoolCreate(&pool, &shareable));
  OK(cuMemPoolExportToShareableHandle(&descriptor, pool, FD, 0));
  passing_send(line, descriptor);
  for (int i = 0; i < 3; i++) {
    OK(cuMemAllocFromPoolAsync(&pointers[i], PIECE, pool, NULL));
    OK(cuMemPoolExportPointer(&data, pointers[i]));
    passing_say(line, &data, sizeof data);
  }
  passing_hear(line, &word, 1);
  /* The memory of an exported pointer leaves the pool with it. */
  OK(cuMemFreeAsync(pointers[0], NULL));
  OK(cuCtxSynchronize());
  cuuint64_t reserved;
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
  CHECK_EQ(reserved, 2 * PIECE);
  passing_say(line, &word, 1);
  passing_hear(line, &word, 1);
  return TEST_END;
}

int main(void) {
  TEST_BEGIN("memory of an exported pool pointer stays in use while any process has the pointer");
  int line;
  char word = 0;
  pid_t child = passing_start(exporter, &line);
  sim_begin();
  CUmemoryPool pool;
  CUmemPoolPtrExportData data[3];
  CUdeviceptr pointers[2], again;
  int descriptor = passing_receive(line);
  OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor, FD, 0));
  for (int i = 0; i < 3; i++)
    passing_hear(line, &data[i], sizeof data[i]);
  size_t exported = sim_free_bytes();
  for (int i = 0; i < 2; i++)
    OK(cuMemPoolImportPointer(&pointers[i], pool, &data[i]));
  CHECK_EQ(sim_free_bytes(), exported);
  passing_say(line, &word, 1);
  passing_hear(line, &word, 1);
  CHECK_EQ(sim_free_bytes(), exported);
  OK(cuMemFree_v2(pointers[0]));
  CHECK_EQ(sim_free_bytes(), exported + PIECE);
  passing_say(line, &word, 1);
  CHECK_EQ(passing_end(child), 0);
  size_t held = sim_free_bytes();
  OK(cuMemFreeAsync(pointers[1], NULL));
  CHECK_EQ(sim_free_bytes(), held + PIECE);
  /* Nobody has the third one any more. */
  CHECK_EQ(cuMemPoolImportPointer(&again, pool, &data[2]), CUDA_ERROR_INVALID_VALUE);
  sim_end();
  return TEST_END;
}
