#include "mig.h"

#include <stdio.h>
#include <string.h>

enum { MEMORY_SLICES = 8 };

/* MIG profiles as printed by `nvidia-smi mig -lgip`: A100 from NVIDIA's MIG user guide, H100 80GB and H200 as published
 * by users (H200: issue 120 of NVIDIA/mig-parted). Placements follow the guide. */
static const struct sim_mig_profile A100_40[] = {
    {"1g.5gb", 19, 7, 1, 1, 4864, 14},  {"1g.10gb", 15, 4, 1, 2, 9984, 14}, {"2g.10gb", 14, 3, 2, 2, 9984, 28},
    {"3g.20gb", 9, 2, 3, 4, 20096, 42}, {"4g.20gb", 5, 1, 4, 4, 20096, 56}, {"7g.40gb", 0, 1, 7, 8, 40448, 98}};
static const struct sim_mig_profile A100_80[] = {
    {"1g.10gb", 19, 7, 1, 1, 9728, 14}, {"1g.20gb", 15, 4, 1, 2, 19968, 14}, {"2g.20gb", 14, 3, 2, 2, 19968, 28},
    {"3g.40gb", 9, 2, 3, 4, 40192, 42}, {"4g.40gb", 5, 1, 4, 4, 40192, 56},  {"7g.80gb", 0, 1, 7, 8, 80640, 98}};
static const struct sim_mig_profile H100_80[] = {
    {"1g.10gb", 19, 7, 1, 1, 9984, 16}, {"1g.20gb", 15, 4, 1, 2, 20096, 26}, {"2g.20gb", 14, 3, 2, 2, 20096, 32},
    {"3g.40gb", 9, 2, 3, 4, 40448, 60}, {"4g.40gb", 5, 1, 4, 4, 40448, 64},  {"7g.80gb", 0, 1, 7, 8, 81152, 132}};
static const struct sim_mig_profile H200[] = {
    {"1g.18gb", 19, 7, 1, 1, 16384, 16}, {"1g.35gb", 15, 4, 1, 2, 33024, 26}, {"2g.35gb", 14, 3, 2, 2, 33024, 32},
    {"3g.71gb", 9, 2, 3, 4, 71168, 60},  {"4g.71gb", 5, 1, 4, 4, 71168, 64},  {"7g.141gb", 0, 1, 7, 8, 143104, 132}};

#define PROFILES(table) (*count = sizeof(table) / sizeof(table)[0], (table))

const struct sim_mig_profile *sim_mig_profiles(const struct sim_gpu *gpu, size_t *count) {
  static const uint64_t GIB = (uint64_t)1 << 30;
  uint64_t memory = gpu->memory_bytes;
  if (strstr(gpu->model, "A100") != NULL && memory >= 39 * GIB && memory <= 41 * GIB) return PROFILES(A100_40);
  if (strstr(gpu->model, "A100") != NULL && memory >= 78 * GIB && memory <= 81 * GIB) return PROFILES(A100_80);
  if (strstr(gpu->model, "H100") != NULL && memory >= 78 * GIB && memory <= 81 * GIB) return PROFILES(H100_80);
  if (strstr(gpu->model, "H200") != NULL && memory >= 138 * GIB && memory <= 142 * GIB) return PROFILES(H200);
  *count = 0;
  return NULL;
}

static bool may_start(const struct sim_mig_profile *profile, uint32_t start) {
  if (profile->memory_slices == 1) return start < 7;
  if (profile->compute_slices == 4 || profile->memory_slices == MEMORY_SLICES) return start == 0;
  if (profile->compute_slices == 2) return start == 0 || start == 2 || start == 4;
  return start % profile->memory_slices == 0 && start + profile->memory_slices <= MEMORY_SLICES;
}

static uint32_t slices_of(uint32_t start, uint32_t count) {
  return ((1u << count) - 1) << start;
}

/* Places the profiles in the memory slices; the first possible placement is used. */
static bool fit(const struct sim_mig_profile *const *profiles, uint32_t count, uint32_t taken, uint32_t *starts) {
  if (count == 0) return true;
  for (uint32_t start = 0; start < MEMORY_SLICES; start++) {
    uint32_t slices = slices_of(start, profiles[0]->memory_slices);
    if (!may_start(profiles[0], start) || (taken & slices) != 0) continue;
    starts[0] = start;
    if (fit(profiles + 1, count - 1, taken | slices, starts + 1)) return true;
  }
  return false;
}

/* The driver numbers GPU instances by size and place: 0 for the whole GPU, then halves, quarters and eighths. */
static uint32_t id_of(const struct sim_mig_profile *profile, uint32_t start) {
  switch (profile->memory_slices) {
  case 1:
    return 7 + start;
  case 2:
    return 3 + start / 2;
  case 4:
    return 1 + start / 4;
  default:
    return 0;
  }
}

void sim_mig_name(struct sim_gpu *instance, const struct sim_gpu *gpu, uint64_t birth) {
  unsigned int first = 0, second = 0;
  sscanf(gpu->uuid, "GPU-%8x-%4x", &first, &second);
  snprintf(instance->uuid, sizeof instance->uuid, "MIG-%08x-%04x%.30s", first ^ (instance->gpu_instance + 1) << 24,
           (second ^ (unsigned int)birth) & 0xffff, strlen(gpu->uuid) > 17 ? gpu->uuid + 17 : "");
}

const struct sim_mig_profile *sim_mig_profile(const struct sim_gpu *gpu, uint32_t id) {
  size_t count;
  const struct sim_mig_profile *known = sim_mig_profiles(gpu, &count);
  for (size_t i = 0; i < count; i++)
    if (known[i].id == id) return &known[i];
  return NULL;
}

uint32_t sim_mig_starts(const struct sim_mig_profile *profile, uint32_t starts[MEMORY_SLICES]) {
  uint32_t count = 0;
  for (uint32_t start = 0; start < MEMORY_SLICES; start++)
    if (may_start(profile, start)) starts[count++] = start;
  return count;
}

bool sim_mig_fits(const struct sim_node *node, uint32_t gpu, const struct sim_mig_profile *profile, uint32_t start) {
  for (uint32_t i = node->count; i < node->boards; i++) {
    const struct sim_gpu *other = &node->gpus[i];
    if (other->parent == (int32_t)gpu &&
        (slices_of(other->start, other->memory_slices) & slices_of(start, profile->memory_slices)) != 0)
      return false;
  }
  return true;
}

bool sim_mig_describe(const struct sim_node *node, uint32_t gpu, const struct sim_mig_profile *profile, uint32_t start,
                      struct sim_gpu *instance, uint32_t *board) {
  *board = node->count;
  while (*board < node->boards && node->gpus[*board].parent != SIM_NO_BOARD)
    ++*board;
  if (*board >= SIM_MAX_BOARDS) return false;
  *instance = node->gpus[gpu];
  instance->mig = false;
  instance->parent = (int32_t)gpu;
  instance->gpu_instance = id_of(profile, start);
  instance->profile = profile->id;
  instance->start = start;
  instance->compute_slices = profile->compute_slices;
  instance->memory_slices = profile->memory_slices;
  instance->memory_bytes = (uint64_t)profile->memory_mib << 20;
  instance->sms = profile->sms;
  instance->uuid[0] = 0;
  snprintf(instance->model, sizeof instance->model, "%.70s MIG %s", node->gpus[gpu].model, profile->name);
  return true;
}

static void add_instance(struct sim_node *node, uint32_t index, const struct sim_mig_profile *profile, uint32_t start) {
  struct sim_gpu instance;
  uint32_t board;
  if (!sim_mig_describe(node, index, profile, start, &instance, &board)) return;
  instance.computes = true;
  sim_mig_name(&instance, &node->gpus[index], 0);
  node->gpus[board] = instance;
  node->boards = board + 1;
}

const char *sim_mig_divide(struct sim_node *node, uint32_t index, const char (*names)[SIM_PROFILE_NAME],
                           uint32_t count) {
  const struct sim_mig_profile *chosen[SIM_MAX_CUTS] = {NULL};
  uint32_t starts[SIM_MAX_CUTS];
  size_t known;
  const struct sim_mig_profile *profiles = sim_mig_profiles(&node->gpus[index], &known);
  if (profiles == NULL) return "mig is known for A100 of 40 and 80 GB, H100 of 80 GB and H200, by model and memoryMiB";
  for (uint32_t i = 0; i < count; i++) {
    for (size_t k = 0; k < known; k++)
      if (strcmp(profiles[k].name, names[i]) == 0) chosen[i] = &profiles[k];
    if (chosen[i] == NULL) return "mig names a profile that this model does not have";
  }
  if (!fit(chosen, count, 0, starts)) return "the instances of mig do not fit beside each other on the GPU";
  node->gpus[index].mig = true;
  for (uint32_t i = 0; i < count; i++)
    add_instance(node, index, chosen[i], starts[i]);
  return NULL;
}

int sim_mig_board(const struct sim_node *node, uint32_t gpu, uint32_t gpu_instance) {
  for (uint32_t i = node->count; i < node->boards; i++)
    if (node->gpus[i].parent == (int32_t)gpu && node->gpus[i].gpu_instance == gpu_instance) return (int)i;
  return -1;
}
