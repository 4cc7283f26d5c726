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

/* Divides GPU `index` of the node into instances with these profiles and appends them to the node's boards. NULL:
 * success; otherwise the reason. */
const char *sim_mig_divide(struct sim_node *node, uint32_t index, const char (*names)[SIM_PROFILE_NAME],
                           uint32_t count);

/* The board of an instance of a GPU, by the id of its GPU instance; -1: none. */
int sim_mig_board(const struct sim_node *node, uint32_t gpu, uint32_t gpu_instance);

#endif
