/*
 * Writes the configuration file that vcuda-controller's node agent would write. Compiled with that project's own
 * header.
 *
 *     vcuda_config FILE MEMORY_BYTES SHARE
 */
#include "include/hijack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  static resource_data_t data;
  if (argc != 4) return 2;
  snprintf(data.pod_uid, sizeof data.pod_uid, "11111111-2222-3333-4444-555555555555");
  snprintf(data.container_name, sizeof data.container_name, "bench");
  data.gpu_memory = strtoull(argv[2], NULL, 10);
  data.utilization = atoi(argv[3]);
  data.limit = data.utilization;
  data.hard_limit = 1;
  data.enable = 1;
  FILE *file = fopen(argv[1], "w");
  if (file == NULL || fwrite(&data, sizeof data, 1, file) != 1) return 1;
  return fclose(file);
}
