/*
 * Memory limits of control groups (version 2), which drivers keep from 615 on. The machine has the limits; a group is
 * known by its folder's inode, which is the same in every cgroup namespace. A process counts in the group where it
 * is now, with all its memory.
 *
 * misc: the nearest group with a limit counts, and programs see that limit. dmem: every group with a limit counts, and
 * programs see that of their own group alone; group_files.h has its files.
 */
#ifndef SIM_GROUP_H
#define SIM_GROUP_H

#include "machine.h"

#define SIM_NO_LIMIT UINT64_MAX

/* The first branch of the driver with memory limits. */
enum { SIM_LIMITS_BRANCH = 615 };

enum sim_group_result {
  SIM_GROUP_DONE,
  SIM_GROUP_ABSENT,      /* no such folder, or it is no control group */
  SIM_GROUP_UNLIMITED,   /* the group has no limits on this GPU */
  SIM_GROUP_UNSUPPORTED, /* this driver keeps no limits, or the machine has no control groups of version 2 */
  SIM_GROUP_FULL,
};

struct sim_group_limits {
  uint64_t soft, hard, used; /* hard may be SIM_NO_LIMIT; `used` is not read by sim_group_set */
};

/* What the driver does when it is loaded: with dmem, it registers the memory of its GPUs. */
void sim_group_begin(const struct sim_machine *machine);

/* Sets, or with soft 0 and hard SIM_NO_LIMIT removes, the limits of a group on a GPU. `path` is its folder. */
enum sim_group_result sim_group_set(struct sim_machine *machine, uint32_t gpu, const char *path,
                                    const struct sim_group_limits *limits);
enum sim_group_result sim_group_get(struct sim_machine *machine, uint32_t gpu, const char *path,
                                    struct sim_group_limits *limits);

/* Writes the groups of the calling process into its row. */
void sim_group_join(struct sim_machine *machine, uint32_t process);

/* Bytes that the groups of a process still allow it. The caller holds the board's memory lock. */
uint64_t sim_group_room(struct sim_machine *machine, uint32_t process, uint32_t gpu);

/* The limit that the driver shows to a process, and what its group holds. False: it shows the GPU. The caller holds the
 * board's memory lock. */
bool sim_group_shown(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t *limit, uint64_t *used);

#endif
