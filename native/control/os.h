/* The operating system interface of the library. All functions are safe in any thread of the host program: they use no
 * allocation, locale or environment, and only symbols that glibc 2.17 has. */
#ifndef VGPU_OS_H
#define VGPU_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t os_now_ns(void);

/* CLOCK_REALTIME in us. */
uint64_t os_wall_clock_us(void);

/* Sleeps until CLOCK_MONOTONIC reaches `at_ns` or a signal arrives. */
void os_sleep_until(uint64_t at_ns);

/* Sleeps while a word that other processes share has this value, until CLOCK_MONOTONIC reaches `at_ns` or it is woken.
 * The word is read by the kernel only. */
void os_wait_word(const uint32_t *word, uint32_t value, uint64_t at_ns);
void os_wake_word(const uint32_t *word);

/* Pauses a spinning thread. `round` is the number of earlier pauses; later rounds yield the CPU. */
void os_backoff(unsigned round);

/* Reads at most `room` - 1 bytes and adds a terminating zero; returns their number or -errno. */
long os_read_text(const char *path, char *text, size_t room);

/* Identifies the file behind an open descriptor; false if it is not open. */
struct os_file {
  uint64_t device;
  uint64_t inode;
};
bool os_identify(int fd, struct os_file *file);

/* The same for the file at a path, without a descriptor; false if there is none or it cannot be reached. */
bool os_identify_path(const char *path, struct os_file *file);

/*
 * Maps a file of at least `size` bytes and identifies it in `*file` (NULL: not needed). NULL on failure; `*error` is
 * then the errno, EINVAL if the file is too short.
 */
void *os_map_file(const char *path, size_t size, bool writable, struct os_file *file, int *error);

/* Zeroed memory; NULL if there is none. */
void *os_map_memory(size_t size);
void os_unmap_memory(void *memory, size_t size);

bool os_is_directory(const char *path);

#endif
