/*
 * The real driver's functions, found once when the library is loaded. The driver's calls among its own functions do not
 * come by here: it is linked so that they stay inside.
 */
#ifndef VGPU_DRIVER_H
#define VGPU_DRIVER_H

#include "hooks.h"
#include <stdbool.h>

/* A function that this driver does not have answers CUDA_ERROR_NOT_FOUND; `driver_has` tells. */
struct driver {
#define CUDA_HOOK(since, name, symbol, ...) __typeof__(symbol) *symbol;
#define CUDA_CALL CUDA_HOOK
#include "cuda_calls.def"
};

extern struct driver driver __attribute__((visibility("hidden")));

CUresult driver_missing(void);

#define driver_has(name) ((void *)driver.name != (void *)driver_missing)

/* Whether the real driver was found at all. */
bool driver_found(void);

/* The real cuGetProcAddress, whichever this driver has: the function of that name, or NULL. */
void *driver_look_up(const char *name, int version, cuuint64_t flags);

#endif
