/*
 * File descriptors of exported GPU memory. All of them refer to one file (the driver's device node), so a descriptor
 * itself does not tell which memory it refers to or whether another copy is open. Open file description locks
 * (F_OFD_SETLK) do: all copies of a descriptor share them, they last until the last copy is closed in any process, and
 * they do not conflict with their own holder.
 */
#ifndef VGPU_DESCRIPTOR_H
#define VGPU_DESCRIPTOR_H

#include "os.h"

/* Marks `fd`, and all later copies of it, with a lock on one byte. False: the system does not support this. */
bool descriptor_mark(int fd, uint64_t byte);
void descriptor_unmark(int fd, uint64_t byte);

/* Keeps the marks of `fd` when it is closed, until this process ends, executes another program, or passes the result to
 * os_unmap_memory with DESCRIPTOR_KEPT_BYTES. Children do not keep them. NULL on failure. */
void *descriptor_keep_marks(int fd);
#define DESCRIPTOR_KEPT_BYTES 1

/* The path of the file behind `fd`. False: it does not fit, or opening it does not yield the same file. */
bool descriptor_path(int fd, char *path, size_t room);

/* Opens the file of marked descriptors again: by its path, or through one of the descriptors. -1 on failure, with
 * ESTALE in errno if another file has that path. */
int descriptor_probe(const char *path, const struct os_file *file);
int descriptor_probe_by(int fd);
void descriptor_close_probe(int probe);

/*
 * Whether a descriptor other than `fd` holds one of `count` marks from `byte` on. True if the lock cannot be queried.
 */
bool descriptor_marked_elsewhere(int fd, uint64_t byte, uint64_t count);

#endif
