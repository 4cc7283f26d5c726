/* The directory that replaces /etc/vcuda in a test, with its limits file. */
#ifndef SANDBOX_H
#define SANDBOX_H

#include "tap.h"
#include "vgpu_abi.h"
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first GPU of the simulated machine without a description; on a machine with real GPUs, that of TEST_CARD_UUID. */
__attribute__((unused)) static const char *gpu_uuid(void) {
  const char *uuid = getenv("TEST_CARD_UUID");
  return uuid != NULL ? uuid : "GPU-00000000-0000-0000-0000-000000000000";
}

static char sandbox_directory[256];

__attribute__((unused)) static void sandbox_path(char *path, size_t room, const char *file) {
  snprintf(path, room, "%s/%s", sandbox_directory, file);
}

/* Uses the directory of the parent test, in a program that a test started. */
__attribute__((unused)) static void sandbox_join(void) {
  snprintf(sandbox_directory, sizeof sandbox_directory, "%s", getenv("VGPU_SANDBOX_DIRECTORY"));
}

/* Sets whether the usage file says that contexts cost nothing (`known`), or their cost is measured. */
__attribute__((unused)) static void sandbox_know_contexts(bool known) {
  char path[512];
  sandbox_path(path, sizeof path, VGPU_USAGE_FILE);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  REQUIRE(fd >= 0 && ftruncate(fd, sizeof(struct vgpu_usage)) == 0);
  struct vgpu_usage *usage = mmap(NULL, sizeof *usage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(usage != MAP_FAILED);
  close(fd);
  for (uint32_t i = 0; i < VGPU_MAX_DEVICES; i++)
    usage->devices[i].context_known = known;
  munmap(usage, sizeof *usage);
}

/* Creates the directory below the test's own and passes it to the sandbox build of the library. Contexts cost nothing
 * in it, because most tests count their allocations with limits that leave no room for a context. */
__attribute__((unused)) static void sandbox_make(void) {
  char path[512];
  const char *state = getenv("GPU_SIM_STATE");
  char fresh[] = "/tmp/vgpu-sandbox-XXXXXX";
  if (state != NULL) {
    snprintf(sandbox_directory, sizeof sandbox_directory, "%s/vcuda", state);
    REQUIRE(mkdir(sandbox_directory, 0755) == 0);
  } else {
    REQUIRE(mkdtemp(fresh) != NULL);
    snprintf(sandbox_directory, sizeof sandbox_directory, "%s", fresh);
  }
  sandbox_path(path, sizeof path, "usage");
  REQUIRE(mkdir(path, 0755) == 0);
  sandbox_know_contexts(true);
  REQUIRE(setenv("VGPU_SANDBOX_DIRECTORY", sandbox_directory, 1) == 0);
}

/* Writes limits of one device; tests change them through the returned mapping. */
__attribute__((unused)) static struct vgpu_limits *sandbox_limits(const char *uuid, uint64_t memory, uint32_t share,
                                                                  uint32_t soft_limit) {
  char path[512];
  sandbox_path(path, sizeof path, VGPU_LIMITS_FILE);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0 && ftruncate(fd, sizeof(struct vgpu_limits)) == 0);
  struct vgpu_limits *limits = mmap(NULL, sizeof *limits, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(limits != MAP_FAILED);
  close(fd);
  limits->header.version = VGPU_ABI_VERSION;
  limits->header.size = sizeof *limits;
  limits->header.device_count = 1;
  limits->header.policy = VGPU_POLICY_DENY_UNLISTED;
  limits->header.log_level = VGPU_LOG_ERROR;
  snprintf(limits->devices[0].uuid, sizeof limits->devices[0].uuid, "%s", uuid);
  limits->live[0][0].memory_limit_bytes = memory;
  limits->live[0][0].share = share;
  limits->live[0][0].soft_limit = soft_limit;
  limits->header.magic = VGPU_LIMITS_MAGIC;
  return limits;
}

/* Publishes a changed copy of a device's live part in the same way as the agent. */
__attribute__((unused)) static void sandbox_publish(struct vgpu_limits *limits, uint32_t device,
                                                    struct vgpu_device_live live) {
  uint32_t next = limits->header.sequence + 1;
  memcpy(limits->live[next & 1], limits->live[(next + 1) & 1], sizeof limits->live[0]);
  limits->live[next & 1][device] = live;
  __atomic_store_n(&limits->header.sequence, next, __ATOMIC_RELEASE);
}

/* The usage file; created if the library has not created it yet. */
__attribute__((unused)) static struct vgpu_usage *sandbox_usage(void) {
  char path[512];
  sandbox_path(path, sizeof path, VGPU_USAGE_FILE);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  REQUIRE(fd >= 0 && ftruncate(fd, sizeof(struct vgpu_usage)) == 0);
  struct vgpu_usage *usage = mmap(NULL, sizeof *usage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(usage != MAP_FAILED);
  close(fd);
  return usage;
}

/* Memory held by all processes on a device. */
__attribute__((unused)) static uint64_t sandbox_held(const struct vgpu_usage *usage, uint32_t device) {
  uint64_t held = 0;
  for (uint32_t slot = 0; slot < VGPU_MAX_PROCESSES; slot++)
    held += __atomic_load_n(&usage->ledger[device][slot].held_bytes, __ATOMIC_ACQUIRE);
  return held;
}

#endif
