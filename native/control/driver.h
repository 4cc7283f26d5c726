/* The functions of the real driver, resolved once when the library is loaded. The driver resolves calls to its own
 * functions internally, so they do not pass the control library. */
#ifndef VGPU_DRIVER_H
#define VGPU_DRIVER_H

#include "hooks.h"
#include <stdbool.h>

/* A function that this driver lacks returns CUDA_ERROR_NOT_FOUND; check with `driver_has`. */
struct driver {
#define CUDA_HOOK(since, name, symbol, ...) __typeof__(symbol) *symbol;
#define CUDA_CALL CUDA_HOOK
#include "cuda_calls.def"
};

extern struct driver driver __attribute__((visibility("hidden")));

CUresult driver_missing(void);

#define driver_has(name) ((void *)driver.name != (void *)driver_missing)

/* The driver's function that it exports under this name; driver_missing if there is none. */
void *driver_find(const char *name);

/* Whether the real driver was found. */
bool driver_found(void);

/* Calls the driver's cuGetProcAddress (v2 if it has one). NULL if there is no function of that name. */
void *driver_look_up(const char *name, int version, cuuint64_t flags);

#endif
