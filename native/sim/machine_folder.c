#include "machine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void sim_machine_folder(char *folder, size_t size) {
  const char *given = getenv("GPU_SIM_STATE");
  if (given != NULL && given[0] != 0)
    snprintf(folder, size, "%s", given);
  else
    snprintf(folder, size, "/dev/shm/gpu-sim-%u", (unsigned)geteuid());
}

void sim_machine_object_path(uint64_t id, char *path, size_t size) {
  char folder[PATH_MAX - 64];
  sim_machine_folder(folder, sizeof folder);
  snprintf(path, size, "%s/ipc-%llu", folder, (unsigned long long)id);
}
