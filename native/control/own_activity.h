/* The activity file of this slice, in which its processes publish what other slices on the GPU read. */
#ifndef VGPU_OWN_ACTIVITY_H
#define VGPU_OWN_ACTIVITY_H

#include "vgpu_abi.h"

/* Maps the file at the first call. NULL: the slice has none, as those that an older agent created. */
struct vgpu_activity *own_activity(void);

#endif
