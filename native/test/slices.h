/* Slices of different priority on one GPU, each with its own directory, linked in the same way as by the agent. */
#ifndef SLICES_H
#define SLICES_H

#include "gpu.h"
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
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

/* A normal slice that may use the whole GPU. */
__attribute__((unused)) static struct slice slices_make_soft(const char *name, uint32_t share) {
  struct slice slice = slices_make(name, VGPU_PRIORITY_NORMAL, share);
  struct vgpu_device_live live = slice.limits->live[slice.limits->header.sequence & 1][0];
  live.soft_limit = 100;
  sandbox_publish(slice.limits, 0, live);
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

#define SLICES_PROGRAMS 8
static pid_t slices_programs[SLICES_PROGRAMS]; /* those that run; 0: none */

/* Runs a program in the slice. It ends with the test. */
__attribute__((unused)) static pid_t slices_run(const struct slice *slice, void (*program)(void)) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) {
    int at = 0;
    while (at < SLICES_PROGRAMS && slices_programs[at] != 0)
      at++;
    REQUIRE(at < SLICES_PROGRAMS);
    return slices_programs[at] = child;
  }
  REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  REQUIRE(setenv("VGPU_SANDBOX_DIRECTORY", slice->directory, 1) == 0);
  gpu_open();
  program();
  _exit(0);
}

/* A batch program: launches a kernel in one stream without waits. */
__attribute__((unused, noreturn)) static void slices_batch(const char *name) {
  CUfunction kernel = gpu_kernel(name);
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;)
    OK(gpu_launch(kernel, 80, stream));
}

/* Waits until a program has ended; returns its status as waitpid does. */
__attribute__((unused)) static int slices_await(pid_t program) {
  int status;
  REQUIRE(waitpid(program, &status, 0) == program);
  for (int i = 0; i < SLICES_PROGRAMS; i++)
    if (slices_programs[i] == program) slices_programs[i] = 0;
  return status;
}

__attribute__((unused)) static void slices_end(pid_t program) {
  REQUIRE(kill(program, SIGKILL) == 0);
  slices_await(program);
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

/* The same while `claimant` claims all the time and does no work. */
__attribute__((unused)) static double slices_used_beside_claims(const struct slice *slice, const struct slice *claimant,
                                                                uint64_t ms) {
  uint64_t charged = __atomic_load_n(&slice->usage->devices[0].charged_ns, __ATOMIC_RELAXED);
  uint64_t at = slices_now();
  while (slices_now() - at < ms * 1000000) {
    __atomic_store_n(&claimant->activity->claimed_until_ns[7], slices_now() + 500000000, __ATOMIC_RELAXED);
    slices_pass(20);
  }
  uint64_t more = __atomic_load_n(&slice->usage->devices[0].charged_ns, __ATOMIC_RELAXED) - charged;
  return 100.0 * (double)more / (double)(slices_now() - at);
}

/* How long the threads of all programs were ready to run and had no CPU, since they began (proc(5), schedstat). */
__attribute__((unused)) static uint64_t slices_held_up_ns(void) {
  uint64_t sum = 0;
  for (int i = 0; i < SLICES_PROGRAMS; i++) {
    char path[320];
    snprintf(path, sizeof path, "/proc/%d/task", (int)slices_programs[i]);
    DIR *threads = slices_programs[i] == 0 ? NULL : opendir(path);
    for (struct dirent *one; threads != NULL && (one = readdir(threads)) != NULL;) {
      unsigned long long on_cpu, waited;
      snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int)slices_programs[i], one->d_name);
      FILE *file = fopen(path, "re");
      if (file == NULL) continue;
      if (fscanf(file, "%llu %llu", &on_cpu, &waited) == 2) sum += waited;
      fclose(file);
    }
    if (threads != NULL) closedir(threads);
  }
  return sum;
}

/*
 * Windows of measuring a law that shows itself only while the host gives the programs a CPU at once. A window that does
 * not show the law is followed by another one, up to SLICES_WINDOWS. If the programs waited for a CPU in almost all of
 * them, the test is skipped; otherwise it is judged by the last window.
 */
#define SLICES_WINDOWS 20
#define SLICES_CALM_LEAST 3
#define SLICES_CALM_PART 0.02

struct slices_windows {
  int count, calm;
  uint64_t at_ns, held_up_ns;
};

/* Whether to measure another window; `shown`: the last one showed the law. */
__attribute__((unused)) static bool slices_again(struct slices_windows *windows, bool shown) {
  uint64_t now = slices_now(), held_up = slices_held_up_ns();
  if (windows->count > 0) {
    if (shown) return false;
    double waited = (double)held_up - (double)windows->held_up_ns;
    if (waited <= SLICES_CALM_PART * (double)(now - windows->at_ns)) windows->calm++;
    if (windows->count == SLICES_WINDOWS && windows->calm < SLICES_CALM_LEAST)
      TEST_SKIP("the programs waited for a CPU of the host in %d of %d windows", SLICES_WINDOWS - windows->calm,
                SLICES_WINDOWS);
    if (windows->count == SLICES_WINDOWS) return false;
  }
  windows->count++;
  windows->at_ns = now;
  windows->held_up_ns = held_up;
  return true;
}

/* The compute share that the slice is charged over the first window of `ms` milliseconds in which it lies within the
 * bounds, or over the last one. */
__attribute__((unused)) static double slices_settled(const struct slice *slice, uint64_t ms, double least,
                                                     double most) {
  double used = 0;
  struct slices_windows windows = {0};
  while (slices_again(&windows, used >= least && used <= most))
    used = slices_used(slice, ms);
  return used;
}

#endif
