/*
 * Where the allocation's files are. The library that goes into containers is linked with directory_fixed.c: nothing in
 * the container, its environment least of all, can point it elsewhere. The sandbox build for tests, benchmarks and the
 * demo takes the directory from the environment instead and is never installed.
 */
#ifndef VGPU_DIRECTORY_H
#define VGPU_DIRECTORY_H

#include <stddef.h>

const char *vgpu_directory(void);

/* Writes "<directory>/<file>" to `path`; an empty string if it does not fit. */
void vgpu_path(char *path, size_t room, const char *file);

#endif
