/* What the container is to see through NVML, as its limits file says. */
#ifndef VGPU_NVML_VIEW_H
#define VGPU_NVML_VIEW_H

#include "ledger.h"
#include "limits.h"
#include "nvml_abi.h"
#include <stdbool.h>

struct nvml_view {
  const struct vgpu_limits *limits; /* NULL: nothing to show but what the driver shows */
  bool hides;                       /* GPUs that are not listed are not shown */
  struct ledger ledger;
};

/* Opens the files when it is asked for the first time. */
const struct nvml_view *nvml_view(void);

/* Index in the limits file; -1: not there. */
int nvml_view_index(const struct nvml_view *view, nvmlDevice_t device);

/* False for a GPU that is to be hidden. One that cannot say which it is, is shown: it may be a listed one that is lost.
 */
bool nvml_view_shows(const struct nvml_view *view, nvmlDevice_t device);

/* Whether the process with this number, as NVML gives it to the caller, is of this container. */
bool nvml_view_owns(const struct nvml_view *view, uint32_t pid);

#endif
