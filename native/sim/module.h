/* Modules and libraries, which contain kernels. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "kernel.h"

enum { MODULE_MAGIC = 0x4d4f4455 };

/* A library is a module without a context. */
struct CUmod_st {
  uint32_t magic;
  bool library;
  bool any_name; /* binary code: its kernels are not listed, so every name exists */
  CUcontext context;
  char *text; /* PTX */
  uint64_t charged;
  struct CUfunc_st *functions;
  struct global *globals;
  struct CUmod_st *next;
  pthread_mutex_t lock;
};

CUresult module_check(CUmodule module);

/* Loads an image: PTX (text with .entry lines), a cubin or fat binary. */
CUresult module_load(const void *image, CUcontext context, CUmodule *module);
void module_close(CUmodule module);
void module_close_all(CUcontext context);

/* A kernel by name; always the same one. */
CUresult module_function(CUmodule module, const char *name, CUfunction *function);

/* All kernels in a PTX text, at most `room`; returns their number. */
unsigned int module_functions(CUmodule module, CUfunction *functions, unsigned int room);

/* A variable of the module (any name; 4096 bytes). */
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *size);

/* The contents of a file with a terminating zero. The caller frees it. */
CUresult module_read_file(const char *path, void **image);

#endif
