/*
 * The machine that is simulated, as docs/simulated-node.md describes it: GPUs and how they are connected. Plain data,
 * part of the shared state.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_MAX_GPUS = 16, SIM_MAX_LINKS = 18 };

/* PCIe levels, in the numbers of NVML. */
enum sim_level { SIM_SELF = 0, SIM_PIX = 10, SIM_PXB = 20, SIM_PHB = 30, SIM_NODE = 40, SIM_SYS = 50 };

struct sim_gpu {
  char uuid[48];
  char model[96];
  uint64_t memory_bytes;
  uint32_t sms;
  uint32_t major, minor_capability;
  uint32_t minor; /* N of /dev/nvidiaN */
  uint32_t pci_domain, pci_bus, pci_device;
  int32_t numa_node; /* -1: not known */
};

struct sim_node {
  char driver_version[32];
  int32_t cuda_version;
  uint32_t count;
  struct sim_gpu gpus[SIM_MAX_GPUS];
  uint8_t level[SIM_MAX_GPUS][SIM_MAX_GPUS]; /* enum sim_level */
  uint16_t nvlinks[SIM_MAX_GPUS][SIM_MAX_GPUS];
  /* What the description may say of the simulation itself, under "simulation". */
  uint64_t context_bytes;  /* that a context takes */
  uint64_t reserved_bytes; /* that the driver keeps of each GPU */
  uint64_t slice_ns;
  uint64_t switch_ns;
  uint64_t copy_bytes_per_us; /* host and device, each direction */
  uint64_t fill_bytes_per_us; /* device memory */
};

/* One GPU with every default. */
void sim_node_default(struct sim_node *node);

/* The sixteen bytes of the GPU's UUID, whose text is "GPU-xxxxxxxx-xxxx-...". */
void sim_gpu_uuid(const struct sim_gpu *gpu, unsigned char bytes[16]);

/* Reads a description. False: `why` says in one line what is wrong and where. */
bool sim_node_parse(struct sim_node *node, const char *text, char *why, size_t size);

#endif
