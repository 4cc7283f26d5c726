/*
 * Contexts: what a process has on a GPU. See struct CUctx_st in driver.h.
 */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "driver.h"

/*
 * What a module has in every context. Modules register their part when the library is loaded, so that contexts need not
 * know them; parts are opened, waited for and closed in this order.
 */
enum context_order { CONTEXT_STREAMS, CONTEXT_MODULES, CONTEXT_MEMORY, CONTEXT_POOLS, CONTEXT_PARTS };

/* Functions that a part does not need are NULL. */
struct context_part {
  CUresult (*open)(CUcontext context);
  CUresult (*wait)(CUcontext context); /* until its work in the context is done */
  void (*settle)(CUcontext context);   /* all work in the context is done */
  void (*close)(CUcontext context);
};

void context_register(enum context_order order, const struct context_part *part);

#define CONTEXT_PART(order, ...)                                                                                       \
  __attribute__((constructor)) static void register_context_part(void) {                                               \
    static const struct context_part part = {__VA_ARGS__};                                                             \
    context_register(order, &part);                                                                                    \
  }

/* Makes a context with its tenant, its legacy stream and the memory that it takes. */
CUresult context_open(CUcontext *context, CUdevice device, unsigned int flags, unsigned int api_version);

/* Ends it: work, streams, modules and memory are gone. The structure stays, so that late users are told. */
void context_close(CUcontext context);

/* Sets a limit and takes or gives the memory that it stands for. */
CUresult context_set_limit(CUcontext context, CUlimit limit, size_t value);

/* A handle that a caller gave. */
CUresult context_check(CUcontext context);

/* Has the GPU nothing to do for it, as far as the model has come? */
bool context_is_idle(CUcontext context);

/* Waits for all work in it. */
CUresult context_synchronize(CUcontext context);

/* The primary context of a device while it is retained; NULL: it is not. */
CUcontext context_primary(CUdevice device);

/* Every context that is open, from the newest; NULL ends it. */
CUcontext context_next(CUcontext after);

/* Waiting may sleep at once, as the flags of the context ask. */
static inline bool context_blocks(CUcontext context) {
  return (context->flags & CU_CTX_SCHED_BLOCKING_SYNC) != 0;
}

#endif
