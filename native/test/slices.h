/* Slices of different priority on one GPU, each with its own directory, linked in the same way as by the agent. */
#ifndef SLICES_H
#define SLICES_H

#include "gpu.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

struct slice {
  char directory[300];
  struct vgpu_limits *limits;
  struct vgpu_usage *usage;
  struct vgpu_activity *activity;
};

static struct vgpu_activity *slices_map_activity(void) {
  char path[512];
  sandbox_path(path, sizeof path, VGPU_ACTIVITY_FILE);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  REQUIRE(fd >= 0 && ftruncate(fd, sizeof(struct vgpu_activity)) == 0);
  struct vgpu_activity *activity = mmap(NULL, sizeof *activity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(activity != MAP_FAILED);
  close(fd);
  return activity;
}

/* Creates a slice with its own share. No agent runs, so the slice gets no idle time beyond its share. */
__attribute__((unused)) static struct slice slices_make(const char *name, enum vgpu_priority priority, uint32_t share) {
  struct slice slice;
  char path[512];
  REQUIRE(getenv("GPU_SIM_STATE") != NULL);
  snprintf(sandbox_directory, sizeof sandbox_directory, "%s/%s", getenv("GPU_SIM_STATE"), name);
  REQUIRE(mkdir(sandbox_directory, 0755) == 0);
  sandbox_path(path, sizeof path, "usage");
  REQUIRE(mkdir(path, 0755) == 0);
  sandbox_path(path, sizeof path, VGPU_HIGH_DIRECTORY);
  REQUIRE(mkdir(path, 0755) == 0);
  sandbox_know_contexts(true);
  snprintf(slice.directory, sizeof slice.directory, "%s", sandbox_directory);
  slice.limits = sandbox_limits(gpu_uuid(), 0, share, 0);
  slice.limits->live[0][0].priority = (uint8_t)priority;
  slice.usage = sandbox_usage();
  slice.activity = slices_map_activity();
  return slice;
}

/* Makes `low` yield to `high`, whose claims are accepted for this many hundredths of the time. */
__attribute__((unused)) static void slices_link(const struct slice *low, const struct slice *high, uint8_t believed) {
  char from[512], to[512];
  struct vgpu_device_live live = low->limits->live[low->limits->header.sequence & 1][0];
  snprintf(from, sizeof from, "%s/" VGPU_ACTIVITY_FILE, high->directory);
  snprintf(to, sizeof to, "%s/" VGPU_HIGH_DIRECTORY "/00.%u", low->directory, (unsigned)live.high_count);
  REQUIRE(link(from, to) == 0);
  low->limits->devices[0].high_believed[live.high_count] = believed;
  live.high_count++;
  sandbox_publish(low->limits, 0, live);
}

/* Runs a program in the slice. */
__attribute__((unused)) static pid_t slices_run(const struct slice *slice, void (*program)(void)) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  REQUIRE(setenv("VGPU_SANDBOX_DIRECTORY", slice->directory, 1) == 0);
  gpu_open();
  program();
  _exit(0);
}

__attribute__((unused)) static void slices_end(pid_t program) {
  REQUIRE(kill(program, SIGKILL) == 0 && waitpid(program, NULL, 0) == program);
}

__attribute__((unused)) static uint64_t slices_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

__attribute__((unused)) static void slices_pass(uint64_t ms) {
  uint64_t until = slices_now() + ms * 1000000;
  while (slices_now() < until) {
    struct timespec time = {.tv_nsec = 2000000};
    nanosleep(&time, NULL);
  }
}

/* The compute shares, in cores, that each of `count` slices is charged over the same `ms` milliseconds. */
__attribute__((unused)) static void slices_all_used(const struct slice *const slices[], double used[], int count,
                                                    uint64_t ms) {
  uint64_t before[VGPU_MAX_DEVICES];
  REQUIRE(count <= (int)VGPU_MAX_DEVICES);
  for (int i = 0; i < count; i++)
    before[i] = __atomic_load_n(&slices[i]->usage->devices[0].charged_ns, __ATOMIC_RELAXED);
  uint64_t at = slices_now();
  slices_pass(ms);
  double passed = (double)(slices_now() - at);
  for (int i = 0; i < count; i++) {
    uint64_t after = __atomic_load_n(&slices[i]->usage->devices[0].charged_ns, __ATOMIC_RELAXED);
    used[i] = 100.0 * (double)(after - before[i]) / passed;
  }
}

/* The compute share, in cores, that the slice is charged over `ms` milliseconds. */
__attribute__((unused)) static double slices_used(const struct slice *slice, uint64_t ms) {
  double used;
  slices_all_used(&slice, &used, 1, ms);
  return used;
}

#define SLICES_WINDOWS 20

/* Measures one window after the other until the slice is charged between `least` and `most` cores, and returns the
 * last window's share. A program may wait for a CPU of the host in any window, but not in twenty. */
__attribute__((unused)) static double slices_settled(const struct slice *slice, uint64_t ms, double least,
                                                     double most) {
  double used = 0;
  for (int window = 0; window < SLICES_WINDOWS; window++) {
    used = slices_used(slice, ms);
    if (used >= least && used <= most) break;
  }
  return used;
}

#endif
