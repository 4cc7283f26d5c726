#define _GNU_SOURCE
#include "descriptor.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Missing in the headers of old C libraries; the values are the same on every architecture. */
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

static struct flock lock_on(uint64_t byte, uint64_t count, short type) {
  return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = (off_t)count};
}

bool descriptor_mark(int fd, uint64_t byte) {
  struct flock lock = lock_on(byte, 1, F_RDLCK);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

void descriptor_unmark(int fd, uint64_t byte) {
  struct flock lock = lock_on(byte, 1, F_UNLCK);
  fcntl(fd, F_OFD_SETLK, &lock);
}

void *descriptor_keep_marks(int fd) {
  void *kept = mmap(NULL, DESCRIPTOR_KEPT_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
  if (kept == MAP_FAILED) return NULL;
  if (madvise(kept, DESCRIPTOR_KEPT_BYTES, MADV_DONTFORK) == 0) return kept;
  munmap(kept, DESCRIPTOR_KEPT_BYTES);
  return NULL;
}

/* "/proc/self/fd/<fd>" */
static void link_path(int fd, char path[32]) {
  char digits[12];
  int count = 0;
  unsigned int rest = (unsigned int)fd;
  do
    digits[count++] = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  memcpy(path, "/proc/self/fd/", 14);
  for (path += 14; count > 0;)
    *path++ = digits[--count];
  *path = '\0';
}

int descriptor_probe_by(int fd) {
  char path[32];
  link_path(fd, path);
  return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

bool descriptor_path(int fd, char *path, size_t room) {
  char link[32];
  struct os_file file;
  link_path(fd, link);
  ssize_t length = readlink(link, path, room);
  if (length <= 0 || (size_t)length >= room || !os_identify(fd, &file)) return false;
  path[length] = '\0';
  int probe = descriptor_probe(path, &file);
  descriptor_close_probe(probe);
  return probe >= 0;
}

int descriptor_probe(const char *path, const struct os_file *file) {
  struct os_file found;
  int probe = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (probe < 0) return -1;
  if (os_identify(probe, &found) && found.device == file->device && found.inode == file->inode) return probe;
  close(probe);
  errno = ESTALE;
  return -1;
}

void descriptor_close_probe(int probe) {
  if (probe >= 0) close(probe);
}

bool descriptor_marked_elsewhere(int fd, uint64_t byte, uint64_t count) {
  struct flock lock = lock_on(byte, count, F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}
