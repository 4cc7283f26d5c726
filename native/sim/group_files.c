#include "group_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGION = 64 };

static void region_of(const struct sim_gpu *gpu, char *text) {
  snprintf(text, REGION, "nvidia/%08x:%02x:%02x.0/vidmem", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
}

/* The number in the line of a region; 0: no such line. */
static uint64_t read_bytes(const char *file, const char *region) {
  char line[256];
  uint64_t bytes = 0;
  FILE *stream = fopen(file, "re");
  while (stream != NULL && fgets(line, sizeof line, stream) != NULL)
    if (strncmp(line, region, strlen(region)) == 0 && line[strlen(region)] == ' ')
      bytes = strtoull(line + strlen(region), NULL, 10);
  if (stream != NULL) fclose(stream);
  return bytes;
}

/* Replaces the line of a region, or adds it. */
static void write_bytes(const char *folder, const char *name, const char *region, uint64_t bytes) {
  char path[PATH_MAX], fresh[PATH_MAX + 8], line[256];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return;
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *before = fopen(path, "re"), *after = fopen(fresh, "we");
  while (before != NULL && after != NULL && fgets(line, sizeof line, before) != NULL)
    if (strncmp(line, region, strlen(region)) != 0) fputs(line, after);
  if (after != NULL && bytes == UINT64_MAX)
    fprintf(after, "%s max\n", region);
  else if (after != NULL)
    fprintf(after, "%s %llu\n", region, (unsigned long long)bytes);
  if (before != NULL) fclose(before);
  if (after != NULL && fclose(after) == 0) rename(fresh, path);
}

void sim_group_files_begin(const struct sim_node *node) {
  char path[PATH_MAX], region[REGION];
  snprintf(path, sizeof path, "%s/dmem.capacity", node->control_groups);
  if (access(path, F_OK) == 0) return;
  for (uint32_t i = 0; i < node->count; i++) {
    region_of(&node->gpus[i], region);
    write_bytes(node->control_groups, "dmem.capacity", region, node->gpus[i].memory_bytes);
  }
}

void sim_group_files_write(const struct sim_node *node, uint32_t gpu, const char *path, uint64_t soft_before,
                           uint64_t soft, uint64_t hard) {
  char region[REGION], folder[PATH_MAX], file[PATH_MAX + 16];
  region_of(&node->gpus[gpu], region);
  write_bytes(path, "dmem.max", region, hard);
  write_bytes(path, "dmem.min", region, soft);
  snprintf(folder, sizeof folder, "%s", path);
  for (char *end = strrchr(folder, '/'); end != NULL; end = strrchr(folder, '/')) {
    *end = 0;
    if (strlen(folder) <= strlen(node->control_groups)) return;
    snprintf(file, sizeof file, "%s/dmem.min", folder);
    write_bytes(folder, "dmem.min", region, read_bytes(file, region) + soft - soft_before);
  }
}
