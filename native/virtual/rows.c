/*
 * Containers that share one simulated GPU, in virtual time (lockstep.c): what each of them gets, second by second. The
 * same arguments always print the same figures, on any host.
 *
 *     rows SECONDS WARM_MS DESCRIPTION PATTERN[+ATTACK]@SHARE[-SOFT_LIMIT][h|l][>SHARE]...
 *
 * DESCRIPTION is the "simulation" part of a node, such as {"switchUs":195}; PATTERN one of bench/tenant.c. A program of
 * share 0 has no limits; h and l are its priority. A soft limit is granted as a whole, as the agent does where others
 * get back what they need. ATTACK is one of lie.c, beside the pattern, or alone where that is "none"; or "stop" or
 * "kill": the program is stopped for a quarter of a second again and again, or ends in the second second. With
 * ROWS_APART in the environment, containers do not know of each other; with ROWS_ALONE, an agent says that
 * each is alone; with ROWS_WINDOW_MS, figures are of windows of this length instead of seconds. Halfway, a share
 * changes to the one after ">".
 */
#define _GNU_SOURCE
#include "clock.h"
#include "lie.h"
#include "lockstep.h"
#include "machine.h"
#include "model.h"
#include "process.h"
#include "vgpu_abi.h"
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16, MOST_SECONDS = 64 };
static const char UUID[] = "GPU-00000000-0000-0000-0000-000000000000";

struct container {
  char pattern[64], attack[16];
  unsigned share, soft_limit, later_share; /* 0: the share does not change */
  uint8_t priority;
  pid_t pid, liar; /* 0: none */
  char directory[PATH_MAX];
  struct vgpu_limits *limits;
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

static bool is_soft(const struct container *one) {
  return one->soft_limit > one->share;
}

/* As the agent decides it: see src/agent/slices/steering/precedence.ts. */
static bool reads(const struct container *one, const struct container *other) {
  if (one->share == 0 || other->share == 0 || one == other || getenv("ROWS_APART") != NULL) return false;
  if (one->priority == VGPU_PRIORITY_HIGH) return false;
  if (one->priority == VGPU_PRIORITY_LOW) return other->priority == VGPU_PRIORITY_HIGH;
  if (is_soft(one))
    return other->priority == VGPU_PRIORITY_HIGH || (other->priority == VGPU_PRIORITY_NORMAL && is_soft(other));
  return other->priority == VGPU_PRIORITY_NORMAL && !is_soft(other);
}

static uint8_t believed(const struct container *one) {
  unsigned most = one->priority == VGPU_PRIORITY_HIGH && is_soft(one) ? one->soft_limit : one->share;
  return (uint8_t)(2 * most < 100 ? 2 * most : 100);
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
  one->limits = limits;
  limits->live[0][0].share = one->share;
  limits->live[0][0].priority = one->priority;
  limits->live[0][0].soft_limit = one->soft_limit;
  one->usage = map_file(one->directory, VGPU_USAGE_FILE, sizeof *one->usage);
  map_file(one->directory, VGPU_ACTIVITY_FILE, sizeof(struct vgpu_activity));
}

static void link_slice(unsigned index) {
  struct container *one = &containers[index];
  for (unsigned i = 0, number = 0; i < count; i++) {
    char from[PATH_MAX + 64], to[PATH_MAX + 64];
    if (!reads(one, &containers[i])) continue;
    snprintf(from, sizeof from, "%s/slice%u/" VGPU_ACTIVITY_FILE, home, i);
    snprintf(to, sizeof to, "%s/" VGPU_HIGH_DIRECTORY "/00.%u", one->directory, number);
    if (link(from, to) != 0) fail(to);
    one->limits->devices[0].high_believed[number] = believed(&containers[i]);
    one->limits->live[0][0].high_count = (uint8_t)++number;
  }
}

static bool lies(const struct container *one) {
  return one->attack[0] != 0 && strcmp(one->attack, "stop") != 0 && strcmp(one->attack, "kill") != 0;
}

static bool has_program(const struct container *one) {
  return strcmp(one->pattern, "none") != 0;
}

static void start_liar(struct container *one) {
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child > 0) {
    one->liar = child;
    return;
  }
  char number[16];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  unsetenv("LOCKSTEP_LATE");
  snprintf(number, sizeof number, "%u", (unsigned)(one - containers) + 1 + MOST);
  setenv("LOCKSTEP_NUMBER", number, 1);
  setenv("ROWS_LIE", one->attack, 1);
  setenv("ROWS_HOME", one->directory, 1);
  execl("/proc/self/exe", "rows", NULL);
  fail("rows");
}

static void start(struct container *one, const char *seconds) {
  static char tenant[PATH_MAX];
  if (lies(one)) start_liar(one);
  if (!has_program(one)) return;
  char preload[PATH_MAX], directory[PATH_MAX + 32], libraries[PATH_MAX], path[PATH_MAX + 64];
  snprintf(tenant, sizeof tenant, "%s/bench/tenant", build);
  snprintf(preload, sizeof preload, "%s/virtual/lockstep.so", build);
  snprintf(libraries, sizeof libraries, "%s/%s", build, one->share == 0 ? "sim" : "mirror");
  snprintf(directory, sizeof directory, "%s", one->directory);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("LD_PRELOAD", preload, 1);
    setenv("LD_LIBRARY_PATH", libraries, 1);
    setenv("VGPU_SANDBOX_DIRECTORY", directory, 1);
    setenv("VGPU_SANDBOX_CLOCK", "preloaded", 1);
    unsetenv("LOCKSTEP_LATE");
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)(one - containers) + 1);
    setenv("LOCKSTEP_NUMBER", number, 1);
    snprintf(path, sizeof path, "%s/output", directory);
    dup2(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 1);
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

static void tell(struct container *one) {
  struct vgpu_device_live *live = &one->limits->live[one->limits->header.sequence & 1][0];
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (is_soft(one)) live->grant_ppm = one->soft_limit * (VGPU_PPM_WHOLE / VGPU_SHARE_WHOLE);
  if (getenv("ROWS_ALONE") != NULL) live->flags = VGPU_LIVE_ALONE;
  live->steered_at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void change_shares(void) {
  for (unsigned i = 0; i < count; i++) {
    struct vgpu_limits *limits = containers[i].limits;
    uint32_t next = limits->header.sequence + 1;
    if (containers[i].later_share == 0) continue;
    limits->live[next & 1][0] = limits->live[(next + 1) & 1][0];
    limits->live[next & 1][0].share = containers[i].later_share;
    __atomic_store_n(&limits->header.sequence, next, __ATOMIC_RELEASE);
  }
}

/* Grants soft limits meanwhile. */
static void pass_ms(uint64_t ms) {
  for (uint64_t done = 0, part; done < ms; done += part) {
    part = ms - done < 250 ? ms - done : 250;
    for (unsigned i = 0; i < count; i++)
      if (is_soft(&containers[i]) || getenv("ROWS_ALONE") != NULL) tell(&containers[i]);
    sleep_ms(part);
  }
}

/* Once a second, at another time in each. */
static void attack(struct lockstep *lockstep, unsigned second) {
  for (unsigned i = 0; i < count; i++) {
    struct container *one = &containers[i];
    if (strcmp(one->attack, "stop") == 0) atomic_fetch_add(&lockstep->programs[i + 1].at_ns, 250000000);
    if (strcmp(one->attack, "kill") == 0 && second == 2) {
      kill(one->pid, SIGKILL);
      waitpid(one->pid, NULL, 0);
      atomic_store(&lockstep->programs[i + 1].pid, 0);
    }
  }
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Of a service: its program prints one latency in each line when it ends. */
static void print_latencies(const struct container *one) {
  static double us[1 << 16];
  char path[PATH_MAX + 64];
  size_t found = 0;
  snprintf(path, sizeof path, "%s/output", one->directory);
  FILE *file = fopen(path, "re");
  if (file == NULL) fail(path);
  while (found < sizeof us / sizeof *us && fscanf(file, "%lf", &us[found]) == 1)
    found++;
  fclose(file);
  if (found < 2) return;
  qsort(us, found, sizeof *us, by_size);
  printf("%-24s %zu latencies: p50 %.3f p99 %.3f longest %.3f ms\n", one->pattern, found, us[found / 2] / 1000,
         us[(size_t)(0.99 * (double)found)] / 1000, us[found - 1] / 1000);
}

static void sample(struct sim_machine *machine, unsigned at) {
  sim_model_enter(machine, 0);
  for (unsigned i = 0; i < count; i++)
    containers[i].work_ns[at] = work_of(machine, containers[i].pid);
  sim_model_leave(machine, 0);
}

static void read_container(struct container *one, const char *text) {
  int at = 0, more = 0;
  sscanf(text, "%63[^@]@%u%n-%u%n", one->pattern, &one->share, &at, &one->soft_limit, &more);
  char *plus = strchr(one->pattern, '+');
  if (plus != NULL) {
    snprintf(one->attack, sizeof one->attack, "%s", plus + 1);
    *plus = 0;
  }
  const char priority = text[more > 0 ? more : at];
  const char *later = strchr(text, '>');
  if (later != NULL) one->later_share = (unsigned)atoi(later + 1);
  one->priority = priority == 'h' ? VGPU_PRIORITY_HIGH : priority == 'l' ? VGPU_PRIORITY_LOW : VGPU_PRIORITY_NORMAL;
}

static void end(const struct container *one) {
  if (one->pid > 0) kill(one->pid, SIGKILL);
  if (one->liar > 0) kill(one->liar, SIGKILL);
}

/* The programs run one after the other: on one processor they hand over in a third of the time. */
static void stay_on_this_processor(void) {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  sched_setaffinity(0, sizeof here, &here);
}

int main(int argc, char **argv) {
  char why[256], text[64], path[PATH_MAX];
  if (getenv("ROWS_LIE") != NULL) return lie(getenv("ROWS_HOME"), getenv("ROWS_LIE"), UUID);
  if (argc < 5) return 2;
  count = (unsigned)argc - 4;
  if (count > MOST) return 2;
  for (unsigned i = 0; i < count; i++)
    read_container(&containers[i], argv[4 + i]);
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
    stay_on_this_processor();
    unsigned programs = 1;
    for (unsigned i = 0; i < count; i++)
      programs += lies(&containers[i]) + has_program(&containers[i]);
    snprintf(text, sizeof text, "%u", programs);
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
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL), execv("/proc/self/exe", argv);
    int status;
    waitpid(child, &status, 0);
    unsetenv("LD_PRELOAD");
    snprintf(path, sizeof path, "rm -rf %s", folder);
    return system(path) == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  snprintf(home, sizeof home, "%s", getenv("ROWS_HOME"));
  struct lockstep *lockstep = map_file(home, "lockstep", 65536);
  for (unsigned i = 0; i < count; i++)
    make_slice(i);
  for (unsigned i = 0; i < count; i++)
    link_slice(i);
  const char *window = getenv("ROWS_WINDOW_MS");
  const uint64_t window_ms = window == NULL ? 1000 : strtoull(window, NULL, 10);
  const double all_s = (double)(warm_ms + window_ms * seconds) / 1000;
  snprintf(text, sizeof text, "%f", all_s + 0.5);
  for (unsigned i = 0; i < count; i++)
    start(&containers[i], text);
  /* The first sleep begins the time of all. */
  sleep_ms(0);
  struct sim_machine *machine = sim_machine_open(why, sizeof why);
  if (machine == NULL) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  pass_ms(warm_ms);
  sample(machine, 0);
  for (unsigned s = 1; s <= seconds; s++) {
    pass_ms(window_ms / 2 + 37 * s % (window_ms / 10));
    attack(lockstep, s);
    pass_ms(window_ms / 2 - 37 * s % (window_ms / 10));
    sample(machine, s);
    if (s == seconds / 2) change_shares();
  }
  const double percent = (double)window_ms * 1e4;
  double sum = 0;
  for (unsigned i = 0; i < count; i++) {
    const struct container *one = &containers[i];
    double got = (double)(one->work_ns[seconds] - one->work_ns[0]) / percent / seconds;
    sum += got;
    printf("%-24s %3u: %6.2f  charged %6.2f  seconds", one->pattern, one->share, got,
           (double)one->usage->devices[0].charged_ns / 1e7 / all_s);
    for (unsigned s = 1; s <= seconds; s++)
      printf(" %.1f", (double)(one->work_ns[s] - one->work_ns[s - 1]) / percent);
    printf("\n");
  }
  printf("sum %.2f, switches %.0f a second\n", sum, (double)machine->boards[0].model.switches / all_s);
  pass_ms(1000);
  for (unsigned i = 0; i < count; i++)
    if (has_program(&containers[i])) print_latencies(&containers[i]);
  for (unsigned i = 0; i < count; i++)
    end(&containers[i]);
  return 0;
}
