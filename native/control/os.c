#define _GNU_SOURCE
#include "os.h"
#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000ull

uint64_t os_now_ns(void) {
  struct timespec now;
  clock_read(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t os_wall_clock_us(void) {
  struct timespec now;
  clock_read(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void os_sleep_until(uint64_t at_ns) {
  struct timespec at = {.tv_sec = (time_t)(at_ns / NS_PER_SECOND), .tv_nsec = (long)(at_ns % NS_PER_SECOND)};
  /* Not the function of libc: a thread that is cancelled in its sleep would keep its locks. */
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

void os_wait_word(const uint32_t *word, uint32_t value, uint64_t at_ns) {
  struct timespec at = {.tv_sec = (time_t)(at_ns / NS_PER_SECOND), .tv_nsec = (long)(at_ns % NS_PER_SECOND)};
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &at, NULL, FUTEX_BITSET_MATCH_ANY);
}

void os_wake_word(const uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void os_backoff(unsigned round) {
  if (round >= 512) {
    os_sleep_until(os_now_ns() + 50000);
    return;
  }
  if (round >= 64) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

long os_read_text(const char *path, char *text, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  size_t length = 0;
  while (length < room - 1) {
    ssize_t got = read(fd, text + length, room - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(fd);
  text[length] = '\0';
  return (long)length;
}

/* Uses the system call, because the fstat symbol requires a newer glibc than containers may have. */
bool os_identify(int fd, struct os_file *file) {
  struct stat status;
  if (syscall(SYS_fstat, fd, &status) != 0) return false;
  *file = (struct os_file){.device = status.st_dev, .inode = status.st_ino};
  return true;
}

bool os_identify_path(const char *path, struct os_file *file) {
  struct stat status;
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  *file = (struct os_file){.device = status.st_dev, .inode = status.st_ino};
  return true;
}

void *os_map_file(const char *path, size_t size, bool writable, struct os_file *file, int *error) {
  int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
  void *mapped = MAP_FAILED;
  *error = EINVAL;
  if (fd < 0) {
    *error = errno;
    return NULL;
  }
  /* Access to a page beyond the end of the file would raise SIGBUS. */
  if (lseek(fd, 0, SEEK_END) >= (off_t)size && (file == NULL || os_identify(fd, file))) {
    mapped = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) *error = errno;
  }
  close(fd);
  return mapped == MAP_FAILED ? NULL : mapped;
}

void *os_map_memory(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void os_unmap_memory(void *memory, size_t size) {
  if (memory != NULL) munmap(memory, size);
}

bool os_is_directory(const char *path) {
  int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT && errno != ENOTDIR;
  close(fd);
  return true;
}
