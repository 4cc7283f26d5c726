/*
 * Where the allocation's files are. The library that goes into containers is linked with directory_fixed.c: nothing in
 * the container, its environment least of all, can point it elsewhere. The sandbox build for tests, benchmarks and the
 * demo takes the directory from the environment instead and is never installed.
 */
#ifndef VGPU_DIRECTORY_H
#define VGPU_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

const char *vgpu_directory(void);

/* Whether this process may be of no container of ours, so that the directory need not be there. */
bool vgpu_directory_may_be_absent(void);

/* Writes "<directory>/<file>" to `path`; an empty string if it does not fit. */
void vgpu_path(char *path, size_t room, const char *file);

#endif
