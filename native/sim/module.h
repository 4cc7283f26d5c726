/*
 * Modules and libraries: what kernels are looked up in.
 */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "kernel.h"

enum { MODULE_MAGIC = 0x4d4f4455 };

/* A library is a module that belongs to no context. */
struct CUmod_st {
  uint32_t magic;
  bool library;
  bool any_name; /* binary code, whose kernels are not listed here: any name is there */
  CUcontext context;
  char *text; /* PTX */
  uint64_t charged;
  struct CUfunc_st *functions;
  struct global *globals;
  struct CUmod_st *next;
  pthread_mutex_t lock;
};

CUresult module_check(CUmodule module);

/* Reads an image: PTX (text with .entry lines), a cubin or fat binary. */
CUresult module_load(const void *image, CUcontext context, CUmodule *module);
void module_close(CUmodule module);
void module_close_all(CUcontext context);

/* A kernel by name; the same one each time. */
CUresult module_function(CUmodule module, const char *name, CUfunction *function);

/* All kernels that a PTX text names, at most `room`; returns how many there are. */
unsigned int module_functions(CUmodule module, CUfunction *functions, unsigned int room);

/* A variable of the module (any name; 4096 bytes). */
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *size);

/* The contents of a file, ending in a zero. The caller frees it. */
CUresult module_read_file(const char *path, void **image);

#endif
