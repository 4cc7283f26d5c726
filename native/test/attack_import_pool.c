#include "gpu.h"
#include "passing.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PIECE (32 * MIB)

static const CUmemPoolProps shareable = {
    .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* Exports two pointers of a pool, then frees one of them (against the rules) and ends with the other one. */
static int exporter(int line) {
  CUmemoryPool pool;
  CUdeviceptr pointers[2];
  CUmemPoolPtrExportData data;
  int descriptor;
  char word;
  gpu_open();
  OK(cuMemPoolCreate(&pool, &shareable));
  OK(cuMemPoolExportToShareableHandle(&descriptor, pool, FD, 0));
  for (int i = 0; i < 2; i++) {
    OK(cuMemAllocFromPoolAsync(&pointers[i], PIECE, pool, NULL));
    OK(cuMemPoolExportPointer(&data, pointers[i]));
    passing_say(line, &data, sizeof data);
  }
  /* Exporting it again charges nothing more. */
  OK(cuMemPoolExportPointer(&data, pointers[1]));
  passing_send(line, descriptor);
  passing_hear(line, &word, 1);
  OK(cuMemFreeAsync(pointers[0], NULL));
  OK(cuCtxSynchronize());
  OK(cuMemPoolTrimTo(pool, 0));
  passing_say(line, &word, 1);
  passing_hear(line, &word, 1);
  return TEST_END;
}

/* A process outside of the container. */
static int foreign(int line) {
  unsetenv("VGPU_SANDBOX_DIRECTORY");
  return exporter(line);
}

static CUmemoryPool import(int line, CUmemPoolPtrExportData data[2]) {
  CUmemoryPool pool;
  passing_hear(line, &data[0], sizeof data[0]);
  passing_hear(line, &data[1], sizeof data[1]);
  int descriptor = passing_receive(line);
  OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor, FD, 0));
  close(descriptor);
  return pool;
}

static void answer(int line) {
  char word = 0;
  passing_say(line, &word, 1);
  passing_hear(line, &word, 1);
}

static uint64_t left_bytes(void) {
  size_t left, total;
  OK(cuMemGetInfo_v2(&left, &total));
  return left;
}

int main(void) {
  TEST_BEGIN("attack: imported memory of a pool stays charged after the process that allocated it has ended");
  sandbox_make();
  sandbox_limits(gpu_uuid(), 4 * PIECE, 100, 0);
  int lines[2];
  pid_t children[2] = {passing_start(exporter, &lines[0]), passing_start(foreign, &lines[1])};
  gpu_open();
  CUmemPoolPtrExportData data[2];
  CUdeviceptr opened[2], own, again;
  CUmemoryPool pool = import(lines[0], data);
  CHECK_EQ(left_bytes(), 2 * PIECE);
  OK(cuMemPoolImportPointer(&opened[0], pool, &data[0]));
  OK(cuMemPoolImportPointer(&opened[1], pool, &data[1]));
  /* Charged once while both processes have it. */
  CHECK_EQ(left_bytes(), 2 * PIECE);
  /* The exporter freed one, but its memory is in use here. */
  answer(lines[0]);
  CHECK_EQ(left_bytes(), 2 * PIECE);
  passing_say(lines[0], "", 1);
  CHECK_EQ(passing_end(children[0]), 0);
  OK(cuMemAlloc_v2(&own, 2 * PIECE));
  REFUSED(cuMemAlloc_v2(&again, 1));
  CHECK_EQ(left_bytes(), 0);
  OK(cuMemFreeAsync(opened[0], NULL));
  CHECK_EQ(left_bytes(), PIECE);
  OK(cuMemFree_v2(opened[1]));
  CHECK_EQ(left_bytes(), 2 * PIECE);

  /* Memory from outside of the container is charged to the process that imports it. */
  pool = import(lines[1], data);
  OK(cuMemPoolImportPointer(&opened[0], pool, &data[0]));
  CHECK_EQ(left_bytes(), PIECE);
  OK(cuMemPoolImportPointer(&opened[1], pool, &data[1]));
  CHECK_EQ(left_bytes(), 0);
  REFUSED(cuMemPoolImportPointer(&again, pool, &data[1]));
  OK(cuMemFree_v2(opened[0]));
  OK(cuMemFree_v2(opened[1]));
  OK(cuMemFree_v2(own));
  answer(lines[1]);
  passing_say(lines[1], "", 1);
  CHECK_EQ(passing_end(children[1]), 0);
  CHECK_EQ(gpu_held(), 0);
  return TEST_END;
}
