#include "nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CPUS_OF_NODE = 16, BITS = 8 * sizeof(unsigned long) };

static nvmlReturn_t pair(const char *call, nvmlDevice_t a, nvmlDevice_t b, uint32_t *x, uint32_t *y) {
  NVML_TRY(nvml_enter_gpu(call, a, x));
  return nvml_enter_gpu(call, b, y);
}

/* ---- CPUs and memory: NUMA node n has the CPUs from 16 n on ---- */

SIM_API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set) {
  ENTER_GPU(device);
  NVML_NEED(set != NULL && size > 0);
  int node = nvml_gpu(gpu)->numa_node;
  long first = node < 0 ? 0 : (long)node * CPUS_OF_NODE;
  long count = node < 0 ? sysconf(_SC_NPROCESSORS_CONF) : CPUS_OF_NODE;
  memset(set, 0, size * sizeof *set);
  for (long cpu = first; cpu < first + count && cpu < (long)(size * BITS); cpu++)
    set[cpu / (long)BITS] |= 1ul << (cpu % (long)BITS);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size, unsigned long *set,
                                                         nvmlAffinityScope_t scope) {
  NVML_NEED(scope <= NVML_AFFINITY_SCOPE_SOCKET);
  return nvmlDeviceGetCpuAffinity(device, size, set);
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set,
                                                 nvmlAffinityScope_t scope) {
  ENTER_GPU(device);
  NVML_NEED(set != NULL && size > 0 && scope <= NVML_AFFINITY_SCOPE_SOCKET);
  int node = nvml_gpu(gpu)->numa_node;
  if (node < 0) return NVML_ERROR_NOT_SUPPORTED;
  if ((size_t)node >= size * BITS) return NVML_ERROR_INSUFFICIENT_SIZE;
  memset(set, 0, size * sizeof *set);
  set[(size_t)node / BITS] |= 1ul << ((size_t)node % BITS);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node) {
  ENTER_GPU(device);
  NVML_NEED(node != NULL);
  if (nvml_gpu(gpu)->numa_node < 0) return NVML_ERROR_NOT_SUPPORTED;
  *node = (unsigned int)nvml_gpu(gpu)->numa_node;
  return NVML_SUCCESS;
}

/* ---- PCIe ---- */

SIM_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                         nvmlGpuTopologyLevel_t *level) {
  uint32_t x, y;
  NVML_TRY(pair(__func__, a, b, &x, &y));
  NVML_NEED(level != NULL);
  *level = (nvmlGpuTopologyLevel_t)nvml.machine->node.level[x][y];
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                                      unsigned int *count, nvmlDevice_t *devices) {
  ENTER_GPU(device);
  NVML_NEED(count != NULL && (*count == 0 || devices != NULL));
  unsigned int found = 0;
  for (uint32_t i = 0; i < nvml.machine->node.count; i++) {
    if (i == gpu || nvml.machine->node.level[gpu][i] != level) continue;
    if (found < *count) devices[found] = nvml_handle(i);
    found++;
  }
  if (*count == 0 || found < *count) *count = found;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same) {
  uint32_t x, y;
  NVML_TRY(pair(__func__, a, b, &x, &y));
  NVML_NEED(same != NULL);
  *same = x == y;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t what,
                                            nvmlGpuP2PStatus_t *status) {
  uint32_t x, y;
  NVML_TRY(pair(__func__, a, b, &x, &y));
  NVML_NEED(status != NULL && x != y && (unsigned int)what <= NVML_P2P_CAPS_INDEX_PROP);
  bool linked = nvml.machine->node.nvlinks[x][y] > 0;
  bool reaches = linked || nvml.machine->node.level[x][y] <= SIM_PHB;
  bool good = what == NVML_P2P_CAPS_INDEX_NVLINK || what == NVML_P2P_CAPS_INDEX_ATOMICS ? linked : reaches;
  *status = good ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}

/* ---- NVLink ---- */

enum { SWITCH = -2, NOBODY = -1, SWITCH_BUS = 0xc0 };

/* The GPU or switch at the other end of a link. A GPU with more links in the matrix than NVML supports is connected to
 * switches; each of its links reaches all other GPUs. */
static int other_end(uint32_t gpu, unsigned int link) {
  const struct sim_node *node = &nvml.machine->node;
  unsigned int sum = 0, most = 0;
  for (uint32_t i = 0; i < node->count; i++) {
    unsigned int links = node->nvlinks[gpu][i];
    if (links > most) most = links;
    if (link >= sum && link < sum + links && sum + links <= NVML_NVLINK_MAX_LINKS) {
      unsigned int rest = 0;
      for (uint32_t k = i + 1; k < node->count; k++)
        rest += node->nvlinks[gpu][k];
      if (sum + links + rest <= NVML_NVLINK_MAX_LINKS) return (int)i;
    }
    sum += links;
  }
  if (sum <= NVML_NVLINK_MAX_LINKS) return NOBODY;
  return link < most ? SWITCH : NOBODY;
}

static nvmlReturn_t enter_link(const char *call, nvmlDevice_t device, unsigned int link, uint32_t *gpu, int *other) {
  NVML_TRY(nvml_enter_gpu(call, device, gpu));
  NVML_NEED(link < NVML_NVLINK_MAX_LINKS);
  if (other_end(*gpu, 0) == NOBODY) return NVML_ERROR_NOT_SUPPORTED; /* a GPU without NVLink */
  *other = other_end(*gpu, link);
  return *other == NOBODY ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

#define ENTER_LINK(device, link)                                                                                       \
  uint32_t gpu;                                                                                                        \
  int other;                                                                                                           \
  NVML_TRY(enter_link(__func__, device, link, &gpu, &other))

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *state) {
  ENTER_LINK(device, link);
  NVML_NEED(state != NULL);
  *state = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version) {
  ENTER_LINK(device, link);
  NVML_NEED(version != NULL);
  unsigned int major = nvml_gpu(gpu)->major;
  *version = major >= 9 ? 4 : major >= 8 ? 3 : major >= 7 ? 2 : 1;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                                   nvmlNvLinkCapability_t capability, unsigned int *has) {
  ENTER_LINK(device, link);
  NVML_NEED(has != NULL && (unsigned int)capability <= NVML_NVLINK_CAP_VALID);
  *has = capability == NVML_NVLINK_CAP_P2P_SUPPORTED || capability == NVML_NVLINK_CAP_P2P_ATOMICS ||
         capability == NVML_NVLINK_CAP_VALID;
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
  ENTER_LINK(device, link);
  NVML_NEED(pci != NULL);
  if (other != SWITCH) {
    nvml_pci_of((uint32_t)other, pci);
    return NVML_SUCCESS;
  }
  memset(pci, 0, sizeof *pci);
  pci->bus = SWITCH_BUS + link % 6; /* links are spread over six switches */
  pci->pciDeviceId = 0x1af110de;
  snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:00.0", 0u, pci->bus & 0xff);
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:00.0", 0u, pci->bus & 0xff);
  return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                         nvmlIntNvLinkDeviceType_t *type) {
  ENTER_LINK(device, link);
  NVML_NEED(type != NULL);
  *type = other == SWITCH ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
  return NVML_SUCCESS;
}
