/*
 * Virtual memory management: addresses, memory and the mapping between them, each by itself.
 */
#ifndef SIM_VMM_H
#define SIM_VMM_H

#include "cuda_abi.h"

#include <stdbool.h>

/* Is the whole range mapped, with access? */
bool vmm_is_accessible(CUdeviceptr address, size_t size);

#endif
