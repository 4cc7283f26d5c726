#include "machine.h"

#include "clock.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a, used only to compare descriptions. */
static uint64_t hash(const char *text) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (; *text != 0; text++)
    value = (value ^ (unsigned char)*text) * 0x100000001b3ull;
  return value;
}

/* The whole file as text; NULL: not readable. The caller frees it. */
static char *read_text(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  struct stat status;
  char *text = NULL;
  if (fstat(file, &status) == 0 && status.st_size < 1 << 20) {
    size_t room = (size_t)status.st_size + 1, length = 0;
    ssize_t got;
    text = malloc(room);
    while (text != NULL && length + 1 < room && (got = read(file, text + length, room - 1 - length)) > 0)
      length += (size_t)got;
    if (text != NULL) text[length] = 0;
  }
  close(file);
  return text;
}

/* Reads the description that the environment names. `hash` is 0 if it names none. */
static bool wanted_node(struct sim_node *node, uint64_t *node_hash, char *why, size_t size) {
  const char *path = getenv("GPU_SIM_NODE");
  *node_hash = 0;
  if (path == NULL || path[0] == 0) {
    sim_node_default(node);
    return true;
  }
  char reason[160];
  char *text = read_text(path);
  if (text == NULL) {
    snprintf(why, size, "GPU_SIM_NODE: %s: %s", path, strerror(errno));
    return false;
  }
  bool good = sim_node_parse(node, text, reason, sizeof reason);
  *node_hash = hash(text);
  free(text);
  if (!good) snprintf(why, size, "GPU_SIM_NODE: %s: %s", path, reason);
  return good;
}

static enum sim_clock wanted_clock(void) {
  const char *name = getenv("GPU_SIM_CLOCK");
  if (name != NULL && strcmp(name, "manual") == 0) return SIM_CLOCK_MANUAL;
  if (name != NULL && strcmp(name, "jump") == 0) return SIM_CLOCK_JUMP;
  return SIM_CLOCK_REAL;
}

void sim_machine_begin_board(struct sim_machine *machine, uint32_t index) {
  const struct sim_node *node = &machine->node;
  struct sim_board *board = &machine->boards[index];
  sim_lock_take(&board->lock);
  memset(&board->model.usage, 0, sizeof board->model.usage);
  board->model.switches = 0;
  const struct sim_pace pace = {
      .slice_ns = node->slice_ns,
      .switch_ns = node->switch_ns,
      .idle_switch_ns = node->idle_switch_ns,
      .boost_percent = node->boost_percent,
  };
  sim_model_begin(&board->model, index, node->gpus[index].sms, &pace, sim_now(machine));
  sim_lock_give(&board->lock);
}

static void begin(struct sim_machine *machine, const struct sim_node *node, uint64_t node_hash) {
  machine->clock = wanted_clock();
  machine->size = sizeof *machine;
  machine->node = *node;
  machine->node_hash = node_hash;
  atomic_store(&machine->virtual_ns, 1000000000);
  uint64_t now = sim_now(machine);
  machine->epoch_ns = sim_wall_clock_ns() - now;
  sim_lock_begin(&machine->lock);
  for (uint32_t i = 0; i < SIM_MAX_BOARDS; i++) {
    sim_lock_begin(&machine->boards[i].lock);
    sim_lock_begin(&machine->boards[i].memory_lock);
  }
  for (uint32_t i = 0; i < node->boards; i++)
    sim_machine_begin_board(machine, i);
  machine->version = SIM_MACHINE_VERSION;
  machine->magic = SIM_MACHINE_MAGIC;
}

static struct sim_machine *map(int file) {
  void *memory = mmap(NULL, sizeof(struct sim_machine), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) return NULL;
  /* Nearly all of it is never touched: on a disk, the kernel would fill 128 KiB around each page that is. */
  madvise(memory, sizeof(struct sim_machine), MADV_RANDOM);
  return memory;
}

/* The existing machine of the file; NULL: none, or an incompatible version. */
static struct sim_machine *existing(int file) {
  struct stat status;
  if (fstat(file, &status) != 0 || (uint64_t)status.st_size != sizeof(struct sim_machine)) return NULL;
  struct sim_machine *machine = map(file);
  if (machine == NULL) return NULL;
  if (machine->magic == SIM_MACHINE_MAGIC && machine->version == SIM_MACHINE_VERSION &&
      machine->size == sizeof *machine)
    return machine;
  sim_machine_close(machine);
  return NULL;
}

/* The new file replaces the old one by rename, so processes that still map the old file are not affected. */
static struct sim_machine *make(const char *path, const struct sim_node *node, uint64_t node_hash) {
  char fresh[PATH_MAX + 16];
  snprintf(fresh, sizeof fresh, "%s.new", path);
  int file = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return NULL;
  struct sim_machine *machine = NULL;
  if (ftruncate(file, sizeof *machine) == 0 && (machine = map(file)) != NULL) {
    begin(machine, node, node_hash);
    if (rename(fresh, path) != 0) {
      sim_machine_close(machine);
      machine = NULL;
    }
  }
  close(file);
  return machine;
}

static struct sim_machine *open_or_make(const char *path, char *why, size_t size) {
  struct sim_node node;
  uint64_t node_hash;
  if (!wanted_node(&node, &node_hash, why, size)) return NULL;
  int file = open(path, O_RDWR | O_CLOEXEC);
  struct sim_machine *machine = file < 0 ? NULL : existing(file);
  if (file >= 0) close(file);
  if (machine != NULL && node_hash != 0 && node_hash != machine->node_hash && !sim_process_any(machine)) {
    sim_machine_close(machine);
    machine = NULL;
  }
  if (machine == NULL) machine = make(path, &node, node_hash);
  if (machine == NULL) snprintf(why, size, "%s: %s", path, strerror(errno));
  return machine;
}

struct sim_machine *sim_machine_open(char *why, size_t size) {
  char folder[PATH_MAX - 32], path[PATH_MAX], guard_path[PATH_MAX];
  sim_machine_folder(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/machine", folder);
  snprintf(guard_path, sizeof guard_path, "%s/lock", folder);
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    snprintf(why, size, "%s: %s", folder, strerror(errno));
    return NULL;
  }
  int guard = open(guard_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (guard < 0 || flock(guard, LOCK_EX) != 0) {
    snprintf(why, size, "%s: %s", guard_path, strerror(errno));
    if (guard >= 0) close(guard);
    return NULL;
  }
  struct sim_machine *machine = open_or_make(path, why, size);
  close(guard);
  return machine;
}

void sim_machine_close(struct sim_machine *machine) {
  munmap(machine, sizeof *machine);
}
