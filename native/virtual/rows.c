/*
 * Containers that share one simulated GPU, in virtual time (lockstep.c): what each of them gets, second by second. The
 * same arguments always print the same figures, on any host.
 *
 *     rows SECONDS WARM_MS DESCRIPTION PATTERN@SHARE...
 *
 * DESCRIPTION is the "simulation" part of a node, such as {"switchUs":195}; PATTERN one of bench/tenant.c. A program of
 * share 0 has no limits. With ROWS_APART in the environment, containers do not know of each other.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "machine.h"
#include "model.h"
#include "process.h"
#include "vgpu_abi.h"
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16, MOST_SECONDS = 64 };
static const char UUID[] = "GPU-00000000-0000-0000-0000-000000000000";

struct container {
  char pattern[64];
  unsigned share;
  pid_t pid;
  char directory[PATH_MAX];
  struct vgpu_usage *usage;
  uint64_t work_ns[MOST_SECONDS + 1];
};

static struct container containers[MOST];
static unsigned count;
static char home[PATH_MAX - 300], build[PATH_MAX - 300];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void *map_file(const char *directory, const char *name, size_t size) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || ftruncate(fd, (off_t)size) != 0) fail(path);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) fail(path);
  close(fd);
  return memory;
}

static void make_slice(unsigned index) {
  struct container *one = &containers[index];
  char path[PATH_MAX + 64];
  snprintf(one->directory, sizeof one->directory, "%s/slice%u", home, index);
  mkdir(one->directory, 0755);
  snprintf(path, sizeof path, "%s/usage", one->directory);
  mkdir(path, 0755);
  snprintf(path, sizeof path, "%s/" VGPU_HIGH_DIRECTORY, one->directory);
  mkdir(path, 0755);
  struct vgpu_limits *limits = map_file(one->directory, VGPU_LIMITS_FILE, sizeof *limits);
  limits->header = (struct vgpu_limits_header){.magic = VGPU_LIMITS_MAGIC,
                                               .version = VGPU_ABI_VERSION,
                                               .size = sizeof *limits,
                                               .device_count = 1,
                                               .log_level = VGPU_LOG_ERROR};
  snprintf(limits->header.allocation, sizeof limits->header.allocation, "slice%u", index);
  snprintf(limits->devices[0].uuid, sizeof limits->devices[0].uuid, "%s", UUID);
  limits->live[0][0].share = one->share;
  one->usage = map_file(one->directory, VGPU_USAGE_FILE, sizeof *one->usage);
  map_file(one->directory, VGPU_ACTIVITY_FILE, sizeof(struct vgpu_activity));
  for (unsigned i = 0, number = 0; i < count; i++) {
    char from[PATH_MAX + 64], to[PATH_MAX + 64];
    if (i == index || containers[i].share == 0 || getenv("ROWS_APART") != NULL) continue;
    snprintf(from, sizeof from, "%s/slice%u/" VGPU_ACTIVITY_FILE, home, i);
    snprintf(to, sizeof to, "%s/" VGPU_HIGH_DIRECTORY "/00.%u", one->directory, number);
    if (symlink(from, to) != 0) fail(to);
    limits->devices[0].high_believed[number] = (uint8_t)(containers[i].share + 15 < 99 ? containers[i].share + 15 : 99);
    limits->live[0][0].high_count = (uint8_t)++number;
  }
}

static void start(struct container *one, const char *seconds) {
  static char tenant[PATH_MAX];
  char preload[PATH_MAX], directory[PATH_MAX + 32], libraries[PATH_MAX];
  snprintf(tenant, sizeof tenant, "%s/bench/tenant", build);
  snprintf(preload, sizeof preload, "%s/virtual/lockstep.so", build);
  snprintf(libraries, sizeof libraries, "%s/%s", build, one->share == 0 ? "sim" : "mirror");
  snprintf(directory, sizeof directory, "%s", one->directory);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    setenv("LD_PRELOAD", preload, 1);
    setenv("LD_LIBRARY_PATH", libraries, 1);
    setenv("VGPU_SANDBOX_DIRECTORY", directory, 1);
    unsetenv("LOCKSTEP_LATE");
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)(one - containers) + 1);
    setenv("LOCKSTEP_NUMBER", number, 1);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    execl(tenant, "tenant", seconds, one->pattern, NULL);
    fail(tenant);
  }
  one->pid = child;
}

static uint64_t work_of(struct sim_machine *machine, pid_t pid) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++) {
    const struct sim_tenant *tenant = &machine->boards[0].model.tenants[i];
    if (atomic_load(&tenant->used) && atomic_load(&machine->processes[tenant->process].pid) == (uint32_t)pid)
      work += tenant->busy_ns;
  }
  return work;
}

static void sleep_ms(uint64_t ms) {
  const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static void sample(struct sim_machine *machine, unsigned at) {
  sim_model_enter(machine, 0);
  for (unsigned i = 0; i < count; i++)
    containers[i].work_ns[at] = work_of(machine, containers[i].pid);
  sim_model_leave(machine, 0);
}

int main(int argc, char **argv) {
  char why[256], text[64], path[PATH_MAX];
  if (argc < 5) return 2;
  unsigned seconds = (unsigned)atoi(argv[1]);
  uint64_t warm_ms = strtoull(argv[2], NULL, 10);
  ssize_t length = readlink("/proc/self/exe", build, sizeof build - 1);
  if (length < 0) fail("/proc/self/exe");
  build[length] = 0;
  for (int up = 0; up < 2; up++)
    *strrchr(build, '/') = 0;
  if (getenv("LOCKSTEP_FILE") == NULL) {
    char folder[] = "/dev/shm/rows-XXXXXX";
    if (mkdtemp(folder) == NULL) fail("mkdtemp");
    setenv("ROWS_HOME", folder, 1);
    snprintf(path, sizeof path, "%s/lockstep", folder);
    setenv("LOCKSTEP_FILE", path, 1);
    setenv("LOCKSTEP_LATE", "1", 1);
    snprintf(text, sizeof text, "%d", argc - 3);
    setenv("LOCKSTEP_COUNT", text, 1);
    setenv("GPU_SIM_STATE", folder, 1);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 65536) != 0) fail(path);
    close(fd);
    snprintf(path, sizeof path, "%s/node.json", folder);
    FILE *node = fopen(path, "we");
    fprintf(node, "{\"gpus\":[{}],\"simulation\":%s}", argv[3]);
    fclose(node);
    setenv("GPU_SIM_NODE", path, 1);
    snprintf(path, sizeof path, "%s/virtual/lockstep.so", build);
    setenv("LD_PRELOAD", path, 1);
    pid_t child = fork();
    if (child == 0) execv("/proc/self/exe", argv);
    int status;
    waitpid(child, &status, 0);
    unsetenv("LD_PRELOAD");
    snprintf(path, sizeof path, "rm -rf %s", folder);
    return system(path) == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  snprintf(home, sizeof home, "%s", getenv("ROWS_HOME"));
  count = (unsigned)argc - 4;
  for (unsigned i = 0; i < count; i++)
    sscanf(argv[4 + i], "%63[^@]@%u", containers[i].pattern, &containers[i].share);
  for (unsigned i = 0; i < count; i++)
    make_slice(i);
  snprintf(text, sizeof text, "%f", (double)warm_ms / 1000 + seconds + 0.5);
  for (unsigned i = 0; i < count; i++)
    start(&containers[i], text);
  /* The first sleep begins the time of all. */
  sleep_ms(0);
  struct sim_machine *machine = sim_machine_open(why, sizeof why);
  if (machine == NULL) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  sleep_ms(warm_ms);
  sample(machine, 0);
  for (unsigned s = 1; s <= seconds; s++) {
    sleep_ms(1000);
    sample(machine, s);
  }
  double sum = 0;
  for (unsigned i = 0; i < count; i++) {
    const struct container *one = &containers[i];
    double got = (double)(one->work_ns[seconds] - one->work_ns[0]) / 1e7 / seconds;
    sum += got;
    printf("%-24s %3u: %6.2f  charged %6.2f  seconds", one->pattern, one->share, got,
           (double)one->usage->devices[0].charged_ns / 1e7 / ((double)warm_ms / 1000 + seconds));
    for (unsigned s = 1; s <= seconds; s++)
      printf(" %.1f", (double)(one->work_ns[s] - one->work_ns[s - 1]) / 1e7);
    printf("\n");
  }
  printf("sum %.2f, switches %.0f a second\n", sum,
         (double)machine->boards[0].model.switches / ((double)warm_ms / 1000 + seconds));
  for (unsigned i = 0; i < count; i++)
    kill(containers[i].pid, SIGKILL);
  return 0;
}
