/* What this process has that the driver cannot checkpoint: the agent does not suspend its container then. */
#ifndef VGPU_OBSTACLES_H
#define VGPU_OBSTACLES_H

#include "vgpu_abi.h"

/* Marks an obstacle of this process, before the call that brings it. Only in a process that enforces limits. */
void obstacles_add(enum vgpu_obstacle obstacle);

#endif
