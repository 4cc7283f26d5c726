/*
 * The operating system as the library uses it. Everything here is safe in any thread of a foreign program: no
 * allocation, no locale, no environment, and only symbols that glibc 2.17 has.
 */
#ifndef VGPU_OS_H
#define VGPU_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t os_now_ns(void);

/* CLOCK_REALTIME in us. */
uint64_t os_wall_clock_us(void);

/* Sleeps until CLOCK_MONOTONIC reaches `at_ns`, or a signal comes. */
void os_sleep_until(uint64_t at_ns);

/* Pauses a spinning thread: `round` counts how often it did so already, later rounds give the processor away. */
void os_backoff(unsigned round);

/* Reads at most `room` - 1 bytes and ends them with a zero; returns their number or -errno. */
long os_read_text(const char *path, char *text, size_t room);

/* Maps `path` whole, at least `size` bytes of it; NULL if that is not possible. `*error` is then the errno, EINVAL when
 * short. */
void *os_map_file(const char *path, size_t size, bool writable, int *error);

/* Fresh zeroed memory, NULL when there is none. */
void *os_map_memory(size_t size);
void os_unmap_memory(void *memory, size_t size);

/* Reads the beginning of a file into `data` without ever waiting; returns the bytes read, 0 where it cannot be read. */
size_t os_read_now(const char *path, void *data, size_t room);

/* What an open descriptor stands for; false when it is not open. */
struct os_file {
  uint64_t device;
  uint64_t inode;
};
bool os_identify(int fd, struct os_file *file);

bool os_is_directory(const char *path);

#endif
