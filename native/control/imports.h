/* Memory that another process allocated and this process opened. */
#ifndef VGPU_IMPORTS_H
#define VGPU_IMPORTS_H

#include "cuda_abi.h"
#include "track.h"
#include <stdbool.h>

/* Tracks imported memory at `pointer`, found by the key of what the exporter passed on (objects_key): as a reference to
 * the object, or, for memory from outside of the container, charged to this process. `context` is the one that the
 * memory ends with; NULL: none. False: it does not fit into the limit, or the tracking table is full; the hook must
 * undo the import. */
bool imports_track(enum track_kind kind, CUdeviceptr pointer, CUcontext context, uint64_t key);

#endif
