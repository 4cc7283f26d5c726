#define _GNU_SOURCE
#include "descriptor.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beyond the range that callers may lock themselves. Each descriptor has its own byte. */
static const off_t FIRST_BYTE = (off_t)1 << 40;
enum { MOST_OF_OBJECT = 1 << 16 };

static int open_file(void) {
  char folder[PATH_MAX - 32], path[PATH_MAX];
  sim_machine_folder(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/descriptors", folder);
  return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

static bool is_of_file(int file, int known) {
  struct stat one, other;
  return fstat(file, &one) == 0 && fstat(known, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

static struct flock lock_of(uint32_t object, uint32_t first, uint32_t count, short type) {
  return (struct flock){.l_type = type,
                        .l_whence = SEEK_SET,
                        .l_start = FIRST_BYTE + (off_t)object * MOST_OF_OBJECT + first,
                        .l_len = count};
}

/* Whether an open file description other than that of `file` holds one of these locks. */
static bool is_locked_elsewhere(int file, uint32_t object, uint32_t first, uint32_t count) {
  struct flock lock = lock_of(object, first, count, F_WRLCK);
  return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int sim_descriptor_make(struct sim_machine *machine, uint32_t object) {
  atomic_fetch_add(&machine->descriptors, 1);
  uint32_t number = atomic_fetch_add(&machine->objects[object].described, 1);
  struct flock lock = lock_of(object, number, 1, F_RDLCK);
  int file = number < MOST_OF_OBJECT ? open_file() : -1;
  if (file >= 0 && fcntl(file, F_OFD_SETLK, &lock) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

/* A descriptor's own lock is the one that only other open files see. */
static bool refers_to(int file, int other, uint32_t object, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (is_locked_elsewhere(other, object, i, 1) && !is_locked_elsewhere(file, object, i, 1)) return true;
  return false;
}

int sim_descriptor_object(const struct sim_machine *machine, int file) {
  int found = -1, other = open_file();
  bool good = other >= 0 && is_of_file(file, other);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS && good && found < 0; i++)
    if (refers_to(file, other, i, atomic_load(&machine->objects[i].described))) found = (int)i;
  if (other >= 0) close(other);
  return found;
}

bool sim_descriptor_is_open(uint32_t object) {
  int file = open_file();
  bool open_somewhere = file < 0 || is_locked_elsewhere(file, object, 0, MOST_OF_OBJECT);
  if (file >= 0) close(file);
  return open_somewhere;
}
