#include "node.h"

#include "json.h"
#include "mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MIB = 1024 * 1024;

static void default_gpu(struct sim_gpu *gpu, uint32_t index) {
  memset(gpu, 0, sizeof *gpu);
  snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%08x-0000-0000-0000-%012x", index, index);
  snprintf(gpu->model, sizeof gpu->model, "Tesla V100-SXM2-16GB");
  gpu->memory_bytes = 16384 * MIB;
  gpu->sms = 80;
  gpu->major = 7;
  gpu->minor = index;
  gpu->pci_bus = 4 + index;
  gpu->numa_node = -1;
  gpu->parent = SIM_IS_GPU;
}

static void defaults(struct sim_node *node) {
  memset(node, 0, sizeof *node);
  snprintf(node->driver_version, sizeof node->driver_version, "580.95.05");
  node->cuda_version = 13000;
  node->context_bytes = 256 * MIB;
  node->reserved_bytes = 256 * MIB;
  node->slice_ns = 2000000;
  node->switch_ns = 195000;
  node->idle_switch_ns = 155000;
  node->event_ns = 1400;
  node->copy_bytes_per_us = 12000;
  node->fill_bytes_per_us = 700000;
  node->checkpoint_bytes_per_us = 6000;
  node->memory_limits = SIM_LIMITS_MISC;
  snprintf(node->control_groups, sizeof node->control_groups, "/sys/fs/cgroup");
}

int sim_node_branch(const struct sim_node *node) {
  return (int)strtol(node->driver_version, NULL, 10);
}

static void connect_all(struct sim_node *node, enum sim_level level) {
  for (uint32_t a = 0; a < node->count; a++)
    for (uint32_t b = 0; b < node->count; b++)
      node->level[a][b] = (uint8_t)(a == b ? SIM_SELF : level);
}

void sim_node_default(struct sim_node *node) {
  defaults(node);
  node->count = node->boards = 1;
  default_gpu(&node->gpus[0], 0);
  connect_all(node, SIM_PHB);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void sim_gpu_uuid(const struct sim_gpu *gpu, unsigned char bytes[16]) {
  const char *text = gpu->uuid;
  if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0) text += 4;
  memset(bytes, 0, 16);
  for (int nibble = 0; *text != 0 && nibble < 32; text++) {
    int digit = hex_digit(*text);
    if (digit < 0) continue;
    bytes[nibble / 2] = (unsigned char)(bytes[nibble / 2] | digit << (nibble % 2 == 0 ? 4 : 0));
    nibble++;
  }
}

/* Requested profiles of a GPU's instances. */
struct cut {
  bool given;
  uint32_t count;
  char profiles[SIM_MAX_CUTS][SIM_PROFILE_NAME];
};

static void read_cut(struct json *json, struct cut *cut) {
  cut->given = true;
  for (json_open_list(json); json_next_item(json); cut->count++) {
    if (cut->count >= SIM_MAX_CUTS) json_refuse(json, "mig has at most 7 instances");
    if (json->wrong != NULL) return;
    json_text(json, cut->profiles[cut->count], SIM_PROFILE_NAME);
  }
}

static void read_gpu(struct json *json, struct sim_gpu *gpu, struct cut *cut) {
  char key[48], text[48];
  for (json_open_object(json); json_next_key(json, key, sizeof key);) {
    if (strcmp(key, "uuid") == 0) {
      json_text(json, gpu->uuid, sizeof gpu->uuid);
    } else if (strcmp(key, "model") == 0) {
      json_text(json, gpu->model, sizeof gpu->model);
    } else if (strcmp(key, "memoryMiB") == 0) {
      gpu->memory_bytes = (uint64_t)json_integer(json, 1, 16777216) * MIB;
    } else if (strcmp(key, "multiprocessors") == 0) {
      gpu->sms = (uint32_t)json_integer(json, 1, 4096);
    } else if (strcmp(key, "computeCapability") == 0) {
      json_text(json, text, sizeof text);
      if (json->wrong == NULL && sscanf(text, "%2u.%1u", &gpu->major, &gpu->minor_capability) != 2)
        json_refuse(json, "a compute capability is \"major.minor\"");
    } else if (strcmp(key, "minor") == 0) {
      gpu->minor = (uint32_t)json_integer(json, 0, 255);
    } else if (strcmp(key, "pciBusId") == 0) {
      json_text(json, text, sizeof text);
      if (json->wrong == NULL && sscanf(text, "%8x:%2x:%2x.0", &gpu->pci_domain, &gpu->pci_bus, &gpu->pci_device) != 3)
        json_refuse(json, "a PCI bus id is \"00000000:04:00.0\"");
    } else if (strcmp(key, "numaNode") == 0) {
      gpu->numa_node = json_null(json) ? -1 : (int32_t)json_integer(json, 0, 1023);
    } else if (strcmp(key, "mig") == 0) {
      if (!json_null(json)) read_cut(json, cut);
    } else {
      json_skip(json);
    }
  }
}

static enum sim_limits read_memory_limits(struct json *json) {
  static const char *const names[] = {[SIM_LIMITS_OFF] = "off", [SIM_LIMITS_MISC] = "misc", [SIM_LIMITS_DMEM] = "dmem"};
  char text[8];
  json_text(json, text, sizeof text);
  for (size_t i = 0; json->wrong == NULL && i < sizeof names / sizeof names[0]; i++)
    if (strcmp(text, names[i]) == 0) return (enum sim_limits)i;
  json_refuse(json, "memoryLimits is off, misc or dmem");
  return SIM_LIMITS_OFF;
}

static void read_simulation(struct json *json, struct sim_node *node) {
  char key[48];
  for (json_open_object(json); json_next_key(json, key, sizeof key);) {
    if (strcmp(key, "contextMiB") == 0)
      node->context_bytes = (uint64_t)json_integer(json, 0, 65536) * MIB;
    else if (strcmp(key, "contextMs") == 0)
      node->context_ns = (uint64_t)json_integer(json, 0, 60000) * 1000000;
    else if (strcmp(key, "reservedMiB") == 0)
      node->reserved_bytes = (uint64_t)json_integer(json, 0, 65536) * MIB;
    else if (strcmp(key, "timeSliceUs") == 0)
      node->slice_ns = (uint64_t)json_integer(json, 1, 1000000) * 1000;
    else if (strcmp(key, "switchUs") == 0)
      node->switch_ns = (uint64_t)json_integer(json, 0, 100000) * 1000;
    else if (strcmp(key, "idleSwitchUs") == 0)
      node->idle_switch_ns = (uint64_t)json_integer(json, 0, 100000) * 1000;
    else if (strcmp(key, "eventNs") == 0)
      node->event_ns = (uint64_t)json_integer(json, 0, 1000000);
    else if (strcmp(key, "kernelGapNs") == 0)
      node->kernel_gap_ns = (uint64_t)json_integer(json, 0, 1000000);
    else if (strcmp(key, "launchNs") == 0)
      node->launch_ns = (uint64_t)json_integer(json, 0, 1000000);
    else if (strcmp(key, "allocateNs") == 0)
      node->allocate_ns = (uint64_t)json_integer(json, 0, 100000000);
    else if (strcmp(key, "clockBoostPercent") == 0)
      node->boost_percent = (uint64_t)json_integer(json, 0, 100);
    else if (strcmp(key, "copyMBps") == 0)
      node->copy_bytes_per_us = (uint64_t)json_integer(json, 1, 100000000);
    else if (strcmp(key, "fillMBps") == 0)
      node->fill_bytes_per_us = (uint64_t)json_integer(json, 1, 100000000);
    else if (strcmp(key, "checkpointMBps") == 0)
      node->checkpoint_bytes_per_us = (uint64_t)json_integer(json, 1, 100000000);
    else if (strcmp(key, "memoryLimits") == 0)
      node->memory_limits = read_memory_limits(json);
    else if (strcmp(key, "controlGroups") == 0)
      json_text(json, node->control_groups, sizeof node->control_groups);
    else
      json_skip(json);
  }
}

static void read_link(struct json *json, struct sim_node *node, uint32_t a, uint32_t b) {
  static const struct {
    const char *label;
    enum sim_level level;
  } levels[] = {{"X", SIM_SELF},    {"PIX", SIM_PIX}, {"PXB", SIM_PXB}, {"PHB", SIM_PHB},
                {"NODE", SIM_NODE}, {"SYS", SIM_SYS}, {"SOC", SIM_SYS}};
  char label[8];
  json_text(json, label, sizeof label);
  if (json->wrong != NULL) return;
  node->level[a][b] = UINT8_MAX;
  node->nvlinks[a][b] = 0;
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
    if (strcmp(label, levels[i].label) == 0) node->level[a][b] = (uint8_t)levels[i].level;
  if (strncmp(label, "NV", 2) == 0) node->nvlinks[a][b] = (uint16_t)strtoul(label + 2, NULL, 10);
  if (node->level[a][b] == UINT8_MAX && node->nvlinks[a][b] == 0)
    json_refuse(json, "a link is X, PIX, PXB, PHB, NODE, SYS or NV<n>");
  else if ((a == b) != (node->level[a][b] == SIM_SELF))
    json_refuse(json, "X stands on the diagonal, and only there");
}

/* Returns the number of rows; each row has the same number of labels. */
static uint32_t read_links(struct json *json, struct sim_node *node) {
  uint32_t rows = 0, longest = 0, shortest = SIM_MAX_GPUS;
  for (json_open_list(json); json_next_item(json); rows++) {
    uint32_t cells = 0;
    for (json_open_list(json); json_next_item(json); cells++) {
      if (rows >= SIM_MAX_GPUS || cells >= SIM_MAX_GPUS) json_refuse(json, "links is for at most 16 GPUs");
      if (json->wrong == NULL) read_link(json, node, rows, cells);
    }
    if (cells > longest) longest = cells;
    if (cells < shortest) shortest = cells;
  }
  if (longest != rows || shortest != rows) json_refuse(json, "links has as many rows as labels in each row");
  return rows;
}

/* NVLink labels hide the PCIe level of a pair. PCIe is a tree, so two GPUs are at most as far apart as the farther of
 * the two is from any third GPU. Without a third GPU, their NUMA nodes determine the level. */
static void find_hidden_levels(struct sim_node *node) {
  uint8_t shown[SIM_MAX_GPUS][SIM_MAX_GPUS];
  memcpy(shown, node->level, sizeof shown);
  for (uint32_t a = 0; a < node->count; a++) {
    for (uint32_t b = 0; b < node->count; b++) {
      if (shown[a][b] != UINT8_MAX) continue;
      bool near = node->gpus[a].numa_node >= 0 && node->gpus[a].numa_node == node->gpus[b].numa_node;
      uint8_t best = near ? SIM_NODE : SIM_SYS;
      for (uint32_t c = 0; c < node->count; c++) {
        if (c == a || c == b || shown[a][c] == UINT8_MAX || shown[b][c] == UINT8_MAX) continue;
        uint8_t way = shown[a][c] > shown[b][c] ? shown[a][c] : shown[b][c];
        if (way < best) best = way;
      }
      node->level[a][b] = best;
    }
  }
}

static const char *contradiction(const struct sim_node *node) {
  for (uint32_t a = 0; a < node->count; a++) {
    for (uint32_t b = 0; b < a; b++) {
      const struct sim_gpu *x = &node->gpus[a], *y = &node->gpus[b];
      if (strcmp(x->uuid, y->uuid) == 0) return "two GPUs have one uuid";
      if (x->minor == y->minor) return "two GPUs have one minor";
      if (x->pci_domain == y->pci_domain && x->pci_bus == y->pci_bus && x->pci_device == y->pci_device)
        return "two GPUs have one pciBusId";
      if (node->level[a][b] != node->level[b][a] || node->nvlinks[a][b] != node->nvlinks[b][a])
        return "links is not symmetric";
    }
  }
  return NULL;
}

bool sim_node_parse(struct sim_node *node, const char *text, char *why, size_t size) {
  struct json json;
  char key[48];
  uint32_t linked = 0;
  struct cut cuts[SIM_MAX_GPUS] = {0};
  defaults(node);
  json_begin(&json, text);
  for (json_open_object(&json); json_next_key(&json, key, sizeof key);) {
    if (strcmp(key, "driverVersion") == 0) {
      json_text(&json, node->driver_version, sizeof node->driver_version);
    } else if (strcmp(key, "cudaVersion") == 0) {
      node->cuda_version = (int32_t)json_integer(&json, 1000, 999999);
    } else if (strcmp(key, "gpus") == 0) {
      for (json_open_list(&json); json_next_item(&json); node->count++) {
        if (node->count >= SIM_MAX_GPUS) json_refuse(&json, "a simulated node has at most 16 gpus");
        if (json.wrong != NULL) break;
        default_gpu(&node->gpus[node->count], node->count);
        read_gpu(&json, &node->gpus[node->count], &cuts[node->count]);
      }
    } else if (strcmp(key, "links") == 0) {
      linked = read_links(&json, node);
    } else if (strcmp(key, "simulation") == 0) {
      read_simulation(&json, node);
    } else {
      json_skip(&json);
    }
  }
  json_end(&json);
  if (json.wrong != NULL) {
    snprintf(why, size, "line %d: %s", json.line, json.wrong);
    return false;
  }
  if (linked == 0) connect_all(node, SIM_PHB);
  const char *wrong = node->count == 0                       ? "gpus has no GPU"
                      : linked != 0 && linked != node->count ? "links has one row for each GPU"
                                                             : contradiction(node);
  node->boards = node->count;
  for (uint32_t i = 0; wrong == NULL && i < node->count; i++) {
    if (!cuts[i].given) continue;
    wrong = node->boards + cuts[i].count > SIM_MAX_GPUS + SIM_MAX_INSTANCES
                ? "a simulated node has at most 56 MIG instances"
                : sim_mig_divide(node, i, (const char(*)[SIM_PROFILE_NAME])cuts[i].profiles, cuts[i].count);
  }
  if (wrong != NULL) {
    snprintf(why, size, "%s", wrong);
    return false;
  }
  find_hidden_levels(node);
  return true;
}
