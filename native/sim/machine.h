/*
 * The simulated machine: one file that every process maps (GPU_SIM_STATE names the folder). It contains all state
 * shared by the two libraries and the gpu-sim command.
 *
 * Write access: a process writes its own row in `processes` and the operations that it pushes. The holder of a board's
 * `lock` writes that board's model. The holder of its `memory_lock` writes the memory columns of that board in all
 * rows. The holder of `lock` writes the rest.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "lock.h"
#include "node.h"
#include "time_model.h"

#include <sys/types.h>

enum {
  SIM_MACHINE_VERSION = 10,
  SIM_MAX_FAULTS = 64,
  SIM_FAULT_NAME = 56,
  SIM_NVML_EVENTS = 256,
  SIM_MAX_OBJECTS = 1024,
  SIM_OBJECT_HOLDERS = 16,
  SIM_MAX_GROUPS = 128,
  SIM_GROUP_DEPTH = 12,
  SIM_GROUP_PATH = 512,
  SIM_MAX_EVENTS = 65536,
};

#define SIM_MACHINE_MAGIC 0x4d49535550475547ull

enum sim_clock {
  SIM_CLOCK_REAL,   /* the machine's monotonic clock */
  SIM_CLOCK_MANUAL, /* advances only through gpu-sim advance-clock (or a test); waiting processes wait for that */
  SIM_CLOCK_JUMP,   /* stands still while programs run; a waiting process advances it to the end of its wait */
};

/* States of a process whose numbers the machine's part needs; the others are those of CUprocessState. */
enum { SIM_PROCESS_RUNNING = 0, SIM_PROCESS_CHECKPOINTED = 2 };

struct sim_process {
  _Atomic uint32_t pid; /* 0: free */
  uint32_t driver;      /* the process called cuInit; 0: it uses NVML only */
  uint32_t users;       /* number of libraries of this process that use the machine */
  uint64_t born;        /* start time in kernel ticks, because a pid can be reused */
  uint64_t image;       /* changes with exec: a process that runs another program no longer uses the machine */
  uint64_t space;       /* pid namespace of `pid` */
  _Atomic uint64_t memory[SIM_MAX_BOARDS];
  _Atomic uint64_t uncounted[SIM_MAX_BOARDS]; /* the part of `memory` that limits of control groups do not count */
  _Atomic uint32_t contexts[SIM_MAX_BOARDS];
  /* See checkpoint.c. */
  _Atomic uint32_t state;                   /* CUprocessState; futex */
  _Atomic uint32_t ruined;                  /* a restore had no room: it can never be restored */
  _Atomic uint32_t managed;                 /* managed allocations and pools, which cannot be checkpointed */
  _Atomic uint64_t host[SIM_MAX_BOARDS];    /* memory of each GPU that a checkpoint holds on the host */
  _Atomic uint64_t groups[SIM_GROUP_DEPTH]; /* its control group and the groups above, see group.h; 0: none */
};

/* Memory or pools that were exported and may have several holders. An object lives until its last reference is dropped
 * and its last descriptor is closed. */
enum { SIM_OBJECT_FREE, SIM_OBJECT_CLAIMED, SIM_OBJECT_USED };

struct sim_object {
  _Atomic uint32_t used;
  uint32_t gpu;
  uint64_t id;
  uint64_t bytes;
  uint64_t inode;             /* of the descriptor of a pool; 0: none, or the descriptors of descriptor.h */
  _Atomic uint32_t described; /* number of descriptors created, see descriptor.h; 0 when all are closed */
  struct {
    uint32_t process; /* slot + 1 */
    uint32_t count;
  } holders[SIM_OBJECT_HOLDERS];
};

/* A control group with memory limits. */
struct sim_group {
  _Atomic uint64_t id; /* of its folder; 0: free */
  char path[SIM_GROUP_PATH];
  _Atomic uint64_t soft[SIM_MAX_GPUS], hard[SIM_MAX_GPUS];
};

/* An injected error of a call. */
struct sim_fault {
  char name[SIM_FAULT_NAME]; /* name of the call; a star at its end matches any suffix */
  int32_t gpu;               /* -1: any */
  uint32_t code;
  int64_t remaining; /* remaining number of failures; -1: unlimited */
};

/* An event as NVML reports it. */
struct sim_nvml_event {
  uint64_t type; /* nvmlEventType... */
  uint64_t data;
  uint32_t gpu;
};

struct sim_board {
  struct sim_lock lock;
  struct sim_lock memory_lock;
  _Atomic uint64_t memory_used; /* sum of rows and objects, without the driver's own reserve */
  _Atomic uint32_t lost;
  _Atomic uint64_t ecc[2][2]; /* [corrected, uncorrected][volatile, aggregate] */
  _Atomic uint32_t compute_mode;
  struct sim_model model;
};

struct sim_machine {
  uint64_t magic;
  uint32_t version;
  uint32_t clock; /* enum sim_clock */
  uint64_t size;
  uint64_t node_hash;
  uint64_t epoch_ns; /* wall clock minus the simulated clock */
  _Atomic uint64_t virtual_ns;
  _Atomic uint32_t virtual_ticks; /* futex: number of changes of the virtual clock */

  struct sim_lock lock;
  struct sim_node node;

  /* Faults, and processes that are locked or checkpointed: most calls only check that there are none. */
  _Atomic uint32_t exceptions;
  _Atomic uint32_t fault_count;
  struct sim_fault faults[SIM_MAX_FAULTS];

  _Atomic uint32_t nvml_event_count; /* futex: the next event is stored at nvml_event_count modulo SIM_NVML_EVENTS */
  struct sim_nvml_event nvml_events[SIM_NVML_EVENTS];

  _Atomic uint64_t ids;
  _Atomic uint32_t descriptors;  /* number of descriptors ever created; zero on most machines */
  _Atomic uint32_t group_limits; /* number of memory limits ever set; zero on most machines */
  struct sim_group groups[SIM_MAX_GROUPS];
  _Atomic uint32_t mps_daemon; /* slot + 1 of the MPS control daemon; 0: none */
  _Atomic uint32_t event_top;  /* events from here on were never used */
  _Atomic uint64_t swept_ns;
  struct sim_process processes[SIM_MAX_PROCESSES];
  struct sim_object objects[SIM_MAX_OBJECTS];
  struct sim_event events[SIM_MAX_EVENTS];
  struct sim_board boards[SIM_MAX_BOARDS];
};

/* Opens the machine, or creates it. An unused machine is created again if GPU_SIM_NODE names another description. NULL:
 * `why` is the reason. */
struct sim_machine *sim_machine_open(char *why, size_t size);
void sim_machine_close(struct sim_machine *machine);

/* Starts the memory and the time model of a described board, which no process uses. */
void sim_machine_begin_board(struct sim_machine *machine, uint32_t board);

/* The folder of the machine. */
void sim_machine_folder(char *folder, size_t size);

/* The file in the folder through which the contents of an object are shared. */
void sim_machine_object_path(uint64_t id, char *path, size_t size);

#endif
