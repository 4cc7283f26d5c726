/* MIG in NVML: the profiles of a GPU, and the GPU instances and compute instances that an administrator creates and
 * destroys. A GPU instance holds one compute instance, which has all of it. */
#include "mig.h"
#include "nvml.h"

#include "process.h"

#include <stdio.h>
#include <string.h>

/* A handle points to the entry of its board. */
struct nvmlGpuInstance_st {
  char unused;
};
struct nvmlComputeInstance_st {
  char unused;
};
static struct nvmlGpuInstance_st gpu_instances[SIM_MAX_BOARDS];
static struct nvmlComputeInstance_st compute_instances[SIM_MAX_BOARDS];

/* ---- profiles ---- */

/* NVML's profile numbers with their ids; variants with media engines are not simulated. */
static const struct sim_mig_profile *numbered(uint32_t gpu, unsigned int number) {
  static const uint32_t ids[] = {
      [NVML_GPU_INSTANCE_PROFILE_1_SLICE] = 19,      [NVML_GPU_INSTANCE_PROFILE_2_SLICE] = 14,
      [NVML_GPU_INSTANCE_PROFILE_3_SLICE] = 9,       [NVML_GPU_INSTANCE_PROFILE_4_SLICE] = 5,
      [NVML_GPU_INSTANCE_PROFILE_7_SLICE] = 0,       [NVML_GPU_INSTANCE_PROFILE_8_SLICE] = 99,
      [NVML_GPU_INSTANCE_PROFILE_6_SLICE] = 99,      [NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1] = 99,
      [NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1] = 99, [NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2] = 15};
  if (!nvml_gpu(gpu)->mig || number >= sizeof ids / sizeof ids[0]) return NULL;
  return sim_mig_profile(nvml_gpu(gpu), ids[number]);
}

/* What both versions of the description of a profile have. */
#define PROFILE_FIELDS(profile)                                                                                        \
  .id = (profile)->id, .sliceCount = (profile)->compute_slices, .instanceCount = (profile)->most,                      \
  .multiprocessorCount = (profile)->sms, .copyEngineCount = (profile)->compute_slices,                                 \
  .memorySizeMB = (profile)->memory_mib

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int number,
                                                         nvmlGpuInstanceProfileInfo_t *info) {
  ENTER_GPU(device);
  NVML_NEED(info != NULL);
  const struct sim_mig_profile *profile = numbered(gpu, number);
  if (profile == NULL) return NVML_ERROR_NOT_SUPPORTED;
  *info = (nvmlGpuInstanceProfileInfo_t){PROFILE_FIELDS(profile)};
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number,
                                                          nvmlGpuInstanceProfileInfo_v2_t *info) {
  ENTER_GPU(device);
  NVML_NEED(info != NULL);
  if (info->version != nvmlGpuInstanceProfileInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const struct sim_mig_profile *profile = numbered(gpu, number);
  if (profile == NULL) return NVML_ERROR_NOT_SUPPORTED;
  *info = (nvmlGpuInstanceProfileInfo_v2_t){.version = info->version, PROFILE_FIELDS(profile)};
  snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
  return NVML_SUCCESS;
}

/* Declares `profile`, the profile of an id. */
#define ENTER_PROFILE(device, id)                                                                                      \
  ENTER_GPU(device);                                                                                                   \
  if (!nvml_gpu(gpu)->mig) return NVML_ERROR_NOT_SUPPORTED;                                                            \
  const struct sim_mig_profile *profile = sim_mig_profile(nvml_gpu(gpu), id);                                          \
  NVML_NEED(profile != NULL)

/* All places of a profile, taken or not. */
SIM_API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                                   nvmlGpuInstancePlacement_t *placements,
                                                                   unsigned int *count) {
  uint32_t starts[8];
  ENTER_PROFILE(device, id);
  NVML_NEED(count != NULL);
  *count = sim_mig_starts(profile, starts);
  for (uint32_t i = 0; placements != NULL && i < *count; i++)
    placements[i] = (nvmlGpuInstancePlacement_t){starts[i], profile->memory_slices};
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id,
                                                                nvmlGpuInstancePlacement_t *placements,
                                                                unsigned int *count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

/* The first places that fit beside each other. */
SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id,
                                                               unsigned int *count) {
  uint32_t starts[8], end = 0;
  ENTER_PROFILE(device, id);
  NVML_NEED(count != NULL);
  *count = 0;
  for (uint32_t i = 0, number = sim_mig_starts(profile, starts); i < number; i++) {
    if (starts[i] < end || !sim_mig_fits(&nvml.machine->node, gpu, profile, starts[i])) continue;
    end = starts[i] + profile->memory_slices;
    ++*count;
  }
  return NVML_SUCCESS;
}

/* ---- GPU instances ---- */

static struct sim_gpu *board_of(uint32_t board) {
  return &nvml.machine->node.gpus[board];
}

/* Like enter_device: the GPU instance must exist. */
static nvmlReturn_t enter_board(const char *call, ptrdiff_t board) {
  NVML_TRY(nvml_enter(call));
  NVML_NEED(board >= (ptrdiff_t)nvml.machine->node.count && board < (ptrdiff_t)nvml.machine->node.boards &&
            nvml_is_instance((uint32_t)board));
  uint32_t gpu;
  return nvml_enter_device(call, nvml_handle((uint32_t)nvml_gpu((uint32_t)board)->parent), &gpu);
}

#define ENTER_GPU_INSTANCE(handle)                                                                                     \
  uint32_t board = (uint32_t)((handle)-gpu_instances);                                                                 \
  NVML_TRY(enter_board(__func__, (handle)-gpu_instances))

#define ENTER_COMPUTE_INSTANCE(handle)                                                                                 \
  uint32_t board = (uint32_t)((handle)-compute_instances);                                                             \
  NVML_TRY(enter_board(__func__, (handle)-compute_instances));                                                         \
  NVML_NEED(nvml_gpu(board)->computes)

/* The caller holds the machine's lock. The board is complete before other processes see it. */
static nvmlReturn_t create(uint32_t gpu, const struct sim_mig_profile *profile, uint32_t start,
                           nvmlGpuInstance_t *instance) {
  struct sim_gpu described;
  uint32_t board;
  struct sim_node *node = &nvml.machine->node;
  if (!sim_mig_fits(node, gpu, profile, start) || !sim_mig_describe(node, gpu, profile, start, &described, &board))
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  described.parent = SIM_NO_BOARD;
  *board_of(board) = described;
  sim_machine_begin_board(nvml.machine, board);
  __atomic_store_n(&board_of(board)->parent, (int32_t)gpu, __ATOMIC_RELEASE);
  if (board == node->boards) __atomic_store_n(&node->boards, board + 1, __ATOMIC_RELEASE);
  *instance = &gpu_instances[board];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                              const nvmlGpuInstancePlacement_t *placement,
                                                              nvmlGpuInstance_t *instance) {
  uint32_t starts[8];
  ENTER_PROFILE(device, id);
  NVML_NEED(placement != NULL && instance != NULL && placement->size == profile->memory_slices);
  for (uint32_t i = 0, number = sim_mig_starts(profile, starts); i < number; i++) {
    if (starts[i] != placement->start) continue;
    sim_lock_take(&nvml.machine->lock);
    nvmlReturn_t result = create(gpu, profile, placement->start, instance);
    sim_lock_give(&nvml.machine->lock);
    return result;
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

SIM_API nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance) {
  uint32_t starts[8];
  ENTER_PROFILE(device, id);
  NVML_NEED(instance != NULL);
  nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_RESOURCES;
  sim_lock_take(&nvml.machine->lock);
  for (uint32_t i = 0, number = sim_mig_starts(profile, starts); i < number && result != NVML_SUCCESS; i++)
    result = create(gpu, profile, starts[i], instance);
  sim_lock_give(&nvml.machine->lock);
  return result;
}

SIM_API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
  ENTER_GPU_INSTANCE(instance);
  sim_lock_take(&nvml.machine->lock);
  bool used = nvml_gpu(board)->computes;
  if (!used) __atomic_store_n(&board_of(board)->parent, SIM_NO_BOARD, __ATOMIC_RELEASE);
  sim_lock_give(&nvml.machine->lock);
  return used ? NVML_ERROR_IN_USE : NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances,
                                               unsigned int *count) {
  ENTER_PROFILE(device, id);
  NVML_NEED(instances != NULL && count != NULL);
  *count = 0;
  for (uint32_t i = nvml.machine->node.count; i < nvml.machine->node.boards; i++)
    if (nvml_gpu(i)->parent == (int32_t)gpu && nvml_gpu(i)->profile == profile->id)
      instances[(*count)++] = &gpu_instances[i];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance) {
  ENTER_GPU(device);
  NVML_NEED(instance != NULL);
  int board = sim_mig_board(&nvml.machine->node, gpu, id);
  if (board < 0) return NVML_ERROR_NOT_FOUND;
  *instance = &gpu_instances[board];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
  ENTER_GPU_INSTANCE(instance);
  NVML_NEED(info != NULL);
  const struct sim_gpu *described = nvml_gpu(board);
  *info = (nvmlGpuInstanceInfo_t){.device = nvml_handle((uint32_t)described->parent),
                                  .id = described->gpu_instance,
                                  .profileId = described->profile,
                                  .placement = {described->start, described->memory_slices}};
  return NVML_SUCCESS;
}

/* ---- compute instances ---- */

/* The number, which is also the id, of the profile that takes a whole GPU instance. */
static uint32_t whole_profile(uint32_t board) {
  static const uint32_t numbers[] = {[1] = NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE,
                                     [2] = NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE,
                                     [3] = NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE,
                                     [4] = NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE,
                                     [7] = NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE};
  return numbers[nvml_gpu(board)->compute_slices];
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned int number,
                                                                  unsigned int engines,
                                                                  nvmlComputeInstanceProfileInfo_t *info) {
  ENTER_GPU_INSTANCE(instance);
  NVML_NEED(info != NULL && engines == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);
  if (number != whole_profile(board)) return NVML_ERROR_NOT_SUPPORTED;
  const struct sim_gpu *described = nvml_gpu(board);
  *info = (nvmlComputeInstanceProfileInfo_t){.id = number,
                                             .sliceCount = described->compute_slices,
                                             .instanceCount = 1,
                                             .multiprocessorCount = described->sms,
                                             .sharedCopyEngineCount = described->compute_slices};
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int id,
                                                          nvmlComputeInstance_t *compute) {
  ENTER_GPU_INSTANCE(instance);
  NVML_NEED(compute != NULL && id == whole_profile(board));
  sim_lock_take(&nvml.machine->lock);
  bool taken = nvml_gpu(board)->computes || !nvml_is_instance(board);
  if (!taken) {
    uint64_t birth = atomic_fetch_add(&nvml.machine->ids, 1) + 1;
    sim_mig_name(board_of(board), nvml_gpu((uint32_t)nvml_gpu(board)->parent), birth);
    __atomic_store_n(&board_of(board)->computes, true, __ATOMIC_RELEASE);
  }
  sim_lock_give(&nvml.machine->lock);
  *compute = &compute_instances[board];
  return taken ? NVML_ERROR_INSUFFICIENT_RESOURCES : NVML_SUCCESS;
}

static bool is_used(uint32_t board) {
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++)
    if (atomic_load(&nvml.machine->processes[i].pid) != 0 &&
        atomic_load(&nvml.machine->processes[i].contexts[board]) != 0)
      return true;
  return atomic_load(&nvml.machine->boards[board].memory_used) != 0;
}

SIM_API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute) {
  ENTER_COMPUTE_INSTANCE(compute);
  sim_process_sweep(nvml.machine, true);
  sim_lock_take(&nvml.machine->lock);
  bool used = is_used(board);
  if (!used) __atomic_store_n(&board_of(board)->computes, false, __ATOMIC_RELEASE);
  sim_lock_give(&nvml.machine->lock);
  return used ? NVML_ERROR_IN_USE : NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned int id,
                                                        nvmlComputeInstance_t *instances, unsigned int *count) {
  ENTER_GPU_INSTANCE(instance);
  NVML_NEED(instances != NULL && count != NULL && id == whole_profile(board));
  *count = nvml_gpu(board)->computes;
  if (*count > 0) *instances = &compute_instances[board];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                           nvmlComputeInstance_t *compute) {
  ENTER_GPU_INSTANCE(instance);
  NVML_NEED(compute != NULL);
  if (id != 0 || !nvml_gpu(board)->computes) return NVML_ERROR_NOT_FOUND;
  *compute = &compute_instances[board];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info) {
  ENTER_COMPUTE_INSTANCE(compute);
  NVML_NEED(info != NULL);
  *info = (nvmlComputeInstanceInfo_t){.device = nvml_handle((uint32_t)nvml_gpu(board)->parent),
                                      .gpuInstance = &gpu_instances[board],
                                      .id = 0,
                                      .profileId = whole_profile(board),
                                      .placement = {0, nvml_gpu(board)->compute_slices}};
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info) {
  return nvmlComputeInstanceGetInfo_v2(compute, info);
}
