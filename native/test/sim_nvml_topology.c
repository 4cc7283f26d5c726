#include "sim_nvml.h"

static nvmlGpuTopologyLevel_t level(unsigned int a, unsigned int b) {
  nvmlGpuTopologyLevel_t found;
  NVML_OK(nvmlDeviceGetTopologyCommonAncestor(sim_device(a), sim_device(b), &found));
  return found;
}

/* The number of links of a GPU to each other GPU, and to switches (last entry). */
static void links_of(unsigned int gpu, unsigned int *links, unsigned int count) {
  nvmlPciInfo_t pci;
  nvmlEnableState_t state;
  nvmlIntNvLinkDeviceType_t type;
  unsigned int other;
  memset(links, 0, (count + 1) * sizeof *links);
  for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
    if (nvmlDeviceGetNvLinkState(sim_device(gpu), link, &state) != NVML_SUCCESS) continue;
    NVML_OK(nvmlDeviceGetNvLinkRemotePciInfo_v2(sim_device(gpu), link, &pci));
    NVML_OK(nvmlDeviceGetNvLinkRemoteDeviceType(sim_device(gpu), link, &type));
    nvmlDevice_t device;
    nvmlReturn_t found = nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &device);
    CHECK_EQ(found == NVML_SUCCESS, type == NVML_NVLINK_DEVICE_TYPE_GPU);
    if (found == NVML_SUCCESS)
      NVML_OK(nvmlDeviceGetIndex(device, &other));
    else
      other = count;
    links[other]++;
  }
}

static const char HYBRID[] = "{\"gpus\": [{\"numaNode\": 0}, {\"numaNode\": 0}, {\"numaNode\": 1}, {\"numaNode\": 1}],"
                             "\"links\": [[\"X\", \"NV2\", \"NV1\", \"SYS\"], [\"NV2\", \"X\", \"SYS\", \"NV1\"],"
                             "[\"NV1\", \"SYS\", \"X\", \"PIX\"], [\"SYS\", \"NV1\", \"PIX\", \"X\"]]}";

static const char SWITCHED[] =
    "{\"gpus\": [{}, {}, {}], \"links\": [[\"X\", \"NV18\", \"NV18\"], [\"NV18\", \"X\", \"NV18\"],"
    "[\"NV18\", \"NV18\", \"X\"]]}";

static int hybrid(void *nothing) {
  unsigned int links[5], count = 4;
  nvmlGpuP2PStatus_t status;
  nvmlDevice_t near[4];
  int can;
  (void)nothing;
  sim_describe(HYBRID);
  NVML_OK(nvmlInit_v2());
  CHECK_EQ(level(0, 3), NVML_TOPOLOGY_SYSTEM);
  CHECK_EQ(level(2, 3), NVML_TOPOLOGY_SINGLE);
  /* Hidden by NVLink: GPUs 0 and 1 are on the same NUMA node. */
  CHECK_EQ(level(0, 1), NVML_TOPOLOGY_NODE);
  CHECK_EQ(level(0, 2), NVML_TOPOLOGY_SYSTEM);
  CHECK_EQ(level(1, 1), NVML_TOPOLOGY_INTERNAL);
  links_of(0, links, 4);
  CHECK_EQ(links[1], 2);
  CHECK_EQ(links[2], 1);
  CHECK_EQ(links[3] + links[4], 0);
  NVML_OK(nvmlDeviceGetP2PStatus(sim_device(0), sim_device(1), NVML_P2P_CAPS_INDEX_NVLINK, &status));
  CHECK_EQ(status, NVML_P2P_STATUS_OK);
  NVML_OK(nvmlDeviceGetP2PStatus(sim_device(0), sim_device(3), NVML_P2P_CAPS_INDEX_READ, &status));
  CHECK_EQ(status, NVML_P2P_STATUS_NOT_SUPPORTED);
  NVML_OK(nvmlDeviceGetTopologyNearestGpus(sim_device(2), NVML_TOPOLOGY_SINGLE, &count, near));
  CHECK(count == 1 && near[0] == sim_device(3));
  OK(cuInit(0));
  OK(cuDeviceCanAccessPeer(&can, 0, 2));
  CHECK_EQ(can, 1);
  OK(cuDeviceCanAccessPeer(&can, 0, 3));
  CHECK_EQ(can, 0);
  NVML_OK(nvmlShutdown());
  return TEST_END;
}

static int switched(void *nothing) {
  unsigned int links[4];
  (void)nothing;
  sim_describe(SWITCHED);
  NVML_OK(nvmlInit_v2());
  for (unsigned int i = 0; i < 3; i++) {
    links_of(i, links, 3);
    CHECK_EQ(links[0] + links[1] + links[2], 0);
    CHECK_EQ(links[3], 18);
  }
  NVML_OK(nvmlShutdown());
  return TEST_END;
}

static int plain(void *nothing) {
  nvmlEnableState_t state;
  (void)nothing;
  sim_describe("{\"gpus\": [{}, {}]}");
  NVML_OK(nvmlInit_v2());
  CHECK_EQ(level(0, 1), NVML_TOPOLOGY_HOSTBRIDGE);
  CHECK_EQ(nvmlDeviceGetNvLinkState(sim_device(0), 0, &state), NVML_ERROR_NOT_SUPPORTED);
  NVML_OK(nvmlShutdown());
  return TEST_END;
}

int main(void) {
  TEST_BEGIN("NVML reports PCIe levels hidden by NVLink, links to GPUs or switches, and peers");
  CHECK_EQ(sim_wait(sim_process(hybrid, NULL)), 0);
  CHECK_EQ(sim_wait(sim_process(switched, NULL)), 0);
  CHECK_EQ(sim_wait(sim_process(plain, NULL)), 0);
  return TEST_END;
}
