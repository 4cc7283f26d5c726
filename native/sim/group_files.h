/*
 * Files of the control group controller dmem, as Linux 6.14 has them: a line "REGION BYTES" or "REGION max" each. The
 * simulated driver writes them where the folder of the control groups is a double; a kernel creates its own.
 */
#ifndef SIM_GROUP_FILES_H
#define SIM_GROUP_FILES_H

#include "node.h"

/* Creates dmem.capacity in the root folder if it does not exist. */
void sim_group_files_begin(const struct sim_node *node);

/* Writes the limits of a group: dmem.max and dmem.min. The groups above it get the change of the soft limit in their
 * dmem.min, as the real driver does; it stays there when a group goes without a soft limit of 0 before. */
void sim_group_files_write(const struct sim_node *node, uint32_t gpu, const char *path, uint64_t soft_before,
                           uint64_t soft, uint64_t hard);

#endif
