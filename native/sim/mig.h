/* MIG partitioning of GPUs: the profiles of each model and the placement of their instances. Pure. */
#ifndef SIM_MIG_H
#define SIM_MIG_H

#include "node.h"

struct sim_mig_profile {
  const char *name; /* "3g.20gb" */
  uint32_t id;      /* as nvidia-smi mig -lgip prints it */
  uint32_t most;    /* maximum number of instances per GPU */
  uint32_t compute_slices;
  uint32_t memory_slices;
  uint32_t memory_mib;
  uint32_t sms;
};

/* The profiles of a GPU's model, ordered by their ids in NVML; NULL: the model has no known profiles. */
const struct sim_mig_profile *sim_mig_profiles(const struct sim_gpu *gpu, size_t *count);

/* The profile of this id; NULL: the model has none. */
const struct sim_mig_profile *sim_mig_profile(const struct sim_gpu *gpu, uint32_t id);

/* The memory slices at which instances of a profile may start, ascending; returns their number. */
uint32_t sim_mig_starts(const struct sim_mig_profile *profile, uint32_t starts[8]);

/* Whether the memory slices from `start` on are free of other instances. */
bool sim_mig_fits(const struct sim_node *node, uint32_t gpu, const struct sim_mig_profile *profile, uint32_t start);

/* Describes a GPU instance at a place that fits, without its compute instance; `board` gets its place among the boards.
 * False: there are too many instances. It exists as soon as its `parent` is set and `boards` counts it. */
bool sim_mig_describe(const struct sim_node *node, uint32_t gpu, const struct sim_mig_profile *profile, uint32_t start,
                      struct sim_gpu *instance, uint32_t *board);

/* Gives an instance the UUID of its compute instance: the first groups of digits differ from the GPU's, so that
 * instances are easy to tell apart. `birth` differs for each that is created, and is 0 for those of the description. */
void sim_mig_name(struct sim_gpu *instance, const struct sim_gpu *gpu, uint64_t birth);

/* Divides GPU `index` of the node into instances with these profiles and appends them to the node's boards. NULL:
 * success; otherwise the reason. */
const char *sim_mig_divide(struct sim_node *node, uint32_t index, const char (*names)[SIM_PROFILE_NAME],
                           uint32_t count);

/* The board of an instance of a GPU, by the id of its GPU instance; -1: none. */
int sim_mig_board(const struct sim_node *node, uint32_t gpu, uint32_t gpu_instance);

#endif
