/* Contexts of a process on a GPU. See struct CUctx_st in driver.h. */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "driver.h"

/* Parts that modules add to every context. Modules register their part when the library is loaded, so contexts do not
 * depend on modules. Parts are opened, waited for and closed in this order. */
enum context_order { CONTEXT_STREAMS, CONTEXT_MODULES, CONTEXT_MEMORY, CONTEXT_POOLS, CONTEXT_PARTS };

/* Functions that a part does not need are NULL. */
struct context_part {
  CUresult (*open)(CUcontext context);
  CUresult (*wait)(CUcontext context); /* waits until the part's work in the context is complete */
  void (*settle)(CUcontext context);   /* called when all work in the context is complete */
  void (*close)(CUcontext context);
};

void context_register(enum context_order order, const struct context_part *part);

#define CONTEXT_PART(order, ...)                                                                                       \
  __attribute__((constructor)) static void register_context_part(void) {                                               \
    static const struct context_part part = {__VA_ARGS__};                                                             \
    context_register(order, &part);                                                                                    \
  }

/* Creates a context with its tenant, its legacy stream and its memory. */
CUresult context_open(CUcontext *context, CUdevice device, unsigned int flags, unsigned int api_version);

/* Destroys a context with its work, streams, modules and memory. The structure is kept, so that later uses of the
 * handle return an error. */
void context_close(CUcontext context);

/* Sets a limit and adjusts the memory that it requires. */
CUresult context_set_limit(CUcontext context, CUlimit limit, size_t value);

/* Validates a handle passed by a caller. */
CUresult context_check(CUcontext context);

/* Whether the GPU has no work for the context at the model's current time. */
bool context_is_idle(CUcontext context);

/* Waits for all work in the context. */
CUresult context_synchronize(CUcontext context);

/* The primary context of a device while it is retained; NULL otherwise. */
CUcontext context_primary(CUdevice device);

/* Iterates over all open contexts, newest first; NULL ends the iteration. */
CUcontext context_next(CUcontext after);

/* Whether waits may block at once, as requested by the flags of the context. */
static inline bool context_blocks(CUcontext context) {
  return (context->flags & CU_CTX_SCHED_BLOCKING_SYNC) != 0;
}

#endif
