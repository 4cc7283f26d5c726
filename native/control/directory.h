/*
 * Location of the slice's files. The library installed in containers is linked with directory_fixed.c: nothing in the
 * container, in particular no environment variable, can redirect it. The sandbox build for tests, benchmarks and the
 * demo reads the directory from the environment and is never installed.
 */
#ifndef VGPU_DIRECTORY_H
#define VGPU_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

const char *vgpu_directory(void);

/* Whether this process may run outside of a container with a slice, so that a missing directory is no error. */
bool vgpu_directory_may_be_absent(void);

/* Writes "<directory>/<file>" to `path`, or an empty string if it does not fit. */
void vgpu_path(char *path, size_t room, const char *file);

#endif
