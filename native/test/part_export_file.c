#include "objects.h"
#include "os.h"
#include "sandbox.h"
#include "tap.h"
#include <pthread.h>

#define THREADS 8
#define ROUNDS 100

static struct vgpu_usage *usage;
static char path[512];
static pthread_barrier_t together;

static int exported(void) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  return fd;
}

/* Completes what another process has begun to write, some time later. */
static void *complete(void *unused) {
  struct os_file file;
  int fd = exported();
  REQUIRE(os_identify(fd, &file));
  close(fd);
  os_sleep_until(os_now_ns() + 20000000);
  usage->header.descriptor_device = file.device;
  usage->header.descriptor_inode = file.inode;
  strncpy(usage->header.descriptor_path, path, sizeof usage->header.descriptor_path - 1);
  __atomic_store_n(&usage->header.descriptor_known, VGPU_DESCRIPTOR_KNOWN, __ATOMIC_RELEASE);
  return unused;
}

/* Exports the object of number `which`, together with all other threads, in a container that never exported before. */
static void *export_together(void *which) {
  uint32_t object = (uint32_t)(uintptr_t)which;
  long failed = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int fd = exported();
    if (object == 0) memset(&usage->header.descriptor_device, 0, 2 * sizeof(uint64_t));
    if (object == 0) __atomic_store_n(&usage->header.descriptor_known, VGPU_DESCRIPTOR_NONE, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&together);
    if (!objects_track_descriptor(usage, object, fd)) failed++;
    pthread_barrier_wait(&together);
    close(fd);
  }
  return (void *)failed;
}

int main(void) {
  TEST_BEGIN("processes that export memory at the same time all keep their descriptors charged");
  pthread_t threads[THREADS];
  sandbox_make();
  sandbox_path(path, sizeof path, "device");
  usage = sandbox_usage();
  int fd = exported();

  usage->header.descriptor_known = VGPU_DESCRIPTOR_WRITING;
  REQUIRE(pthread_create(&threads[0], NULL, complete, NULL) == 0);
  CHECK(objects_track_descriptor(usage, 0, fd));
  pthread_join(threads[0], NULL);
  CHECK_EQ(usage->slots[0].object.descriptors, 1);

  /* The process that began to write was killed. */
  memset(&usage->header.descriptor_device, 0, 2 * sizeof(uint64_t));
  usage->header.descriptor_known = VGPU_DESCRIPTOR_WRITING;
  CHECK(objects_track_descriptor(usage, 0, fd));
  CHECK_EQ(usage->header.descriptor_known, VGPU_DESCRIPTOR_KNOWN);
  CHECK_EQ(strcmp(usage->header.descriptor_path, path), 0);

  REQUIRE(pthread_barrier_init(&together, NULL, THREADS) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, export_together, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    CHECK_EQ((long)failed, 0);
  }

  /* Another file is not the driver's. */
  sandbox_path(path, sizeof path, "another");
  int another = exported();
  CHECK(!objects_track_descriptor(usage, 0, another));
  return TEST_END;
}
