#define _GNU_SOURCE
#include "lie.h"
#include "vgpu_abi.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const uint64_t MS = 1000000;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* As control/turn.c does. */
static uint64_t hash(const char *text) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (; *text != 0; text++)
    value = (value ^ (unsigned char)*text) * 0x100000001b3ull;
  return value | 1;
}

int lie(const char *directory, const char *manner, const char *uuid) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/" VGPU_ACTIVITY_FILE, directory);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  void *memory =
      fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct vgpu_activity), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 1;
  struct vgpu_turn *turn = &((struct vgpu_activity *)memory)->turns[0];
  bool holds = strcmp(manner, "hold") == 0 || strcmp(manner, "wake") == 0 || strcmp(manner, "cut") == 0;
  bool waits = strcmp(manner, "wait") == 0, wakes = strcmp(manner, "wake") == 0, cuts = strcmp(manner, "cut") == 0;
  const struct timespec pause = {.tv_nsec = wakes ? 20000 : 100000};
  for (uint64_t round = 0;; round++) {
    uint64_t now = now_ns();
    if (holds || waits || strcmp(manner, "last") == 0) {
      turn->gpu = hash(uuid);
      turn->slice = 1;
      turn->busy_until_ns = now + 100 * MS;
    }
    if (holds) turn->holds_until_ns = now + 150 * MS;
    if (waits || holds) turn->waits_until_ns = now + 20 * MS;
    if (waits || holds || strcmp(manner, "first") == 0) turn->level_ns = 0;
    if (strcmp(manner, "last") == 0) turn->level_ns = round / 5000 % 2 == 0 ? UINT64_MAX / 2 : 0;
    if (strcmp(manner, "apart") == 0) turn->pauses = 1;
    if (wakes) {
      turn->ended++;
      syscall(SYS_futex, &turn->ended, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    if (cuts && round % 10 == 9 && (ftruncate(fd, 0) != 0 || ftruncate(fd, sizeof(struct vgpu_activity)) != 0))
      return 1;
    nanosleep(&pause, NULL);
  }
}
