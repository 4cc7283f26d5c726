/* The container's view of NVML, derived from its limits file. */
#ifndef VGPU_NVML_VIEW_H
#define VGPU_NVML_VIEW_H

#include "ledger.h"
#include "limits.h"
#include "nvml_abi.h"
#include <stdbool.h>

struct nvml_view {
  const struct vgpu_limits *limits; /* NULL: show what the driver shows */
  bool hides;                       /* hide GPUs that are not listed */
  struct ledger ledger;
};

/* Opens the files on first use. */
const struct nvml_view *nvml_view(void);

/* Index in the limits file; -1: not listed. */
int nvml_view_index(const struct nvml_view *view, nvmlDevice_t device);

/* False for a hidden GPU. A GPU that cannot report its UUID is shown, because it may be a listed GPU that was lost. */
bool nvml_view_shows(const struct nvml_view *view, nvmlDevice_t device);

/* Whether this pid, as NVML reports it to the caller, belongs to the container. */
bool nvml_view_owns(const struct nvml_view *view, uint32_t pid);

#endif
