/*
 * Descriptors that stand for memory of the GPU. They are all of one file (the driver's device node), so nothing about a
 * descriptor itself says which memory it stands for, or whether a copy of it is open elsewhere. Locks of open files do
 * (F_OFD_SETLK): they belong to what all copies of a descriptor share, last until the last copy is closed in whatever
 * process, and do not stand in their own holder's way.
 */
#ifndef VGPU_DESCRIPTOR_H
#define VGPU_DESCRIPTOR_H

#include "os.h"

/* Marks `fd` and whatever will be a copy of it with a byte. False: the system cannot. */
bool descriptor_mark(int fd, uint64_t byte);

/* The path of the file that `fd` is of; false if it does not fit or cannot be opened anew by it. */
bool descriptor_path(int fd, char *path, size_t room);

/* Opens the file of marked descriptors anew: by its path, or by one of them. -1: that is not possible. */
int descriptor_probe(const char *path, const struct os_file *file);
int descriptor_probe_by(int fd);
void descriptor_leave(int probe);

/* Whether a descriptor other than `fd` has one of `count` marks from `byte` on; in doubt yes. */
bool descriptor_others_have(int fd, uint64_t byte, uint64_t count);

#endif
