/* Attributes of simulated GPUs. */
#ifndef SIM_ATTRIBUTE_H
#define SIM_ATTRIBUTE_H

#include "cuda_abi.h"

/* An attribute that is the same on every simulated GPU; 0 for another one. */
int attribute_constant(CUdevice device, CUdevice_attribute attribute);

#endif
