/* The simulated machine as described in docs/design/simulated-node.md: GPUs and their connections. Plain data, part of
 * the shared state. */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  SIM_MAX_GPUS = 16,
  SIM_MAX_CUTS = 7, /* maximum number of MIG instances per GPU */
  SIM_MAX_INSTANCES = 56,
  SIM_MAX_BOARDS = SIM_MAX_GPUS + SIM_MAX_INSTANCES,
  SIM_MAX_LINKS = 18,
  SIM_PROFILE_NAME = 16,
};

/* PCIe levels with NVML's numbers. */
enum sim_level { SIM_SELF = 0, SIM_PIX = 10, SIM_PXB = 20, SIM_PHB = 30, SIM_NODE = 40, SIM_SYS = 50 };

/* A GPU, or a MIG instance of a GPU. */
struct sim_gpu {
  char uuid[48];
  char model[96];
  uint64_t memory_bytes;
  uint32_t sms;
  uint32_t major, minor_capability;
  uint32_t minor; /* N of /dev/nvidiaN */
  uint32_t pci_domain, pci_bus, pci_device;
  int32_t numa_node; /* -1: unknown */
  bool mig;          /* MIG is enabled: programs run only on its instances */
  /* Fields of an instance. */
  int32_t parent; /* index of its GPU; SIM_IS_GPU: this is a GPU; SIM_NO_BOARD: its instance was destroyed */
  uint32_t gpu_instance, profile, start, compute_slices, memory_slices;
  uint32_t computes; /* a GPU instance has its compute instance; programs and MIG device handles need one */
};

enum { SIM_IS_GPU = -1, SIM_NO_BOARD = -2 };

/* True for a GPU, and for a GPU instance with its compute instance. */
static inline bool sim_gpu_runs(const struct sim_gpu *gpu) {
  return gpu->parent == SIM_IS_GPU || (gpu->parent >= 0 && gpu->computes);
}

/* How the driver keeps memory limits of control groups. SIM_LIMITS_OFF: it cannot. */
enum sim_limits { SIM_LIMITS_OFF, SIM_LIMITS_MISC, SIM_LIMITS_DMEM };

struct sim_node {
  char driver_version[32];
  int32_t cuda_version;
  uint32_t count;  /* number of GPUs */
  uint32_t boards; /* number of GPUs and MIG instances, in this order; each has its own time model and memory. The place
                    * of a destroyed instance is used again */
  struct sim_gpu gpus[SIM_MAX_BOARDS];
  uint8_t level[SIM_MAX_GPUS][SIM_MAX_GPUS]; /* enum sim_level */
  uint16_t nvlinks[SIM_MAX_GPUS][SIM_MAX_GPUS];
  /* Parameters of the simulation, under "simulation" in the description. */
  uint64_t context_bytes;  /* memory of a context */
  uint64_t context_ns;     /* time that creating a context takes */
  uint64_t reserved_bytes; /* kept by the driver on each GPU */
  uint64_t slice_ns;
  uint64_t switch_ns;               /* of a switch that interrupts a context */
  uint64_t idle_switch_ns;          /* of a switch from a context that has nothing to run */
  uint64_t event_ns;                /* time that recording an event takes on the GPU */
  uint64_t kernel_gap_ns;           /* time between two kernels of a stream */
  uint64_t launch_ns;               /* time of the host for a launch */
  uint64_t allocate_ns;             /* and for allocating or freeing device memory */
  uint64_t boost_percent;           /* by how much the clock of an idle GPU is faster than under full load */
  uint64_t copy_bytes_per_us;       /* between host and device, per direction */
  uint64_t fill_bytes_per_us;       /* within device memory */
  uint64_t checkpoint_bytes_per_us; /* of a checkpointed process, to the host and back */
  enum sim_limits memory_limits;
  char control_groups[256]; /* root folder of the control groups */
};

/* The first number of the driver's version. */
int sim_node_branch(const struct sim_node *node);

/* One GPU with default values. */
void sim_node_default(struct sim_node *node);

/* The sixteen bytes of a UUID, whose text is "GPU-xxxxxxxx-xxxx-..." (MIG- for an instance). */
void sim_gpu_uuid(const struct sim_gpu *gpu, unsigned char bytes[16]);

/* Parses a description. False: `why` names the error and its position in one line. */
bool sim_node_parse(struct sim_node *node, const char *text, char *why, size_t size);

#endif
