#define _GNU_SOURCE
#include "liveness.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sim_identify(uint32_t pid, uint64_t *born, uint64_t *image) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = 0;
  /* The name in parentheses may contain anything. After it follow state (field 3), start time (22) and stack start
   * (28). */
  const char *at = strrchr(text, ')');
  if (at == NULL || at[1] == 0 || at[2] == 'Z' || at[2] == 'X') return false;
  at += 2;
  for (int field = 3; field < 28; field++) {
    at = strchr(at + 1, ' ');
    if (at == NULL) return false;
    if (field + 1 == 22) *born = strtoull(at, NULL, 10);
  }
  *image = strtoull(at, NULL, 10);
  return true;
}

/* The pid namespace of a process as an inode number; 0: not visible. */
static uint64_t space_of(const char *process) {
  char path[PATH_MAX];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
  return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* Constant for the life of a process; a child may be in another namespace. */
static _Atomic uint64_t own_space;

uint64_t sim_own_space(void) {
  uint64_t space = atomic_load(&own_space);
  if (space == 0) atomic_store(&own_space, space = space_of("self"));
  return space;
}

/*
 * Every library of a process locks its row's byte in one file while it uses the machine. The kernel releases the lock
 * when the process ends or calls exec, so querying the lock is a cheap liveness check. It is the only check for
 * processes in other pid namespaces, whose pids have no meaning here.
 */
static int open_locks(void) {
  char path[PATH_MAX];
  sim_machine_folder(path, sizeof path - 8);
  strcat(path, "/alive");
  return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

/* Lock of this library, see open_locks. A child inherits it and must close it. */
static _Atomic int own_lock = -1;

/* Whether the row is locked, seen through `file`, whose own locks are ignored. */
static bool is_locked(int file, const struct sim_machine *machine, const struct sim_process *process, bool otherwise) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = process - machine->processes, .l_len = 1};
  return fcntl(file, F_OFD_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK : otherwise;
}

static bool holds_lock(const struct sim_machine *machine, const struct sim_process *process) {
  int file = open_locks();
  if (file < 0) return true;
  bool held = is_locked(file, machine, process, true);
  close(file);
  return held;
}

bool sim_is_alive(const struct sim_machine *machine, const struct sim_process *process) {
  uint32_t pid = atomic_load(&process->pid);
  if (pid == 0) return false;
  if (process->space != sim_own_space()) return holds_lock(machine, process);
  if (is_locked(atomic_load(&own_lock), machine, process, false)) return true;
  /* A missing lock may also mean that the program closed descriptors that it did not open. */
  uint64_t born, image;
  if (!sim_identify(pid, &born, &image) || born != process->born) return false;
  return image == 0 || image == process->image;
}

/* The pid in the innermost namespace, from /proc/<pid>/status; 0: unknown. */
static uint32_t innermost_pid(const char *process) {
  char path[PATH_MAX], line[256];
  uint32_t pid = 0;
  snprintf(path, sizeof path, "/proc/%s/status", process);
  FILE *file = fopen(path, "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "NSpid:", 6) != 0) continue;
    char *last = strrchr(line, '\t');
    if (last != NULL) pid = (uint32_t)strtoul(last, NULL, 10);
    break;
  }
  if (file != NULL) fclose(file);
  return pid;
}

uint32_t sim_process_number(const struct sim_process *process) {
  uint32_t pid = atomic_load(&process->pid), found = 0;
  if (process->space == sim_own_space()) return pid;
  DIR *folder = opendir("/proc");
  const struct dirent *entry;
  while (folder != NULL && found == 0 && (entry = readdir(folder)) != NULL) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || space_of(entry->d_name) != process->space) continue;
    if (innermost_pid(entry->d_name) == pid) found = (uint32_t)strtoul(entry->d_name, NULL, 10);
  }
  if (folder != NULL) closedir(folder);
  return found;
}

void sim_unlock_row(void) {
  int file = atomic_exchange(&own_lock, -1);
  if (file >= 0) close(file);
}

static void begin_child(void) {
  sim_unlock_row();
  atomic_store(&own_space, 0);
}

void sim_lock_row(int row) {
  static bool registered;
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = row, .l_len = 1};
  if (!registered) pthread_atfork(NULL, NULL, begin_child);
  registered = true;
  sim_unlock_row();
  int file = open_locks();
  if (file >= 0) fcntl(file, F_OFD_SETLK, &lock);
  atomic_store(&own_lock, file);
}
