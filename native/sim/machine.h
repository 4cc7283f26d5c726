/*
 * The simulated machine: one file, mapped by every process that uses it (GPU_SIM_STATE names the folder). What the two
 * libraries and the gpu-sim command share is here and nowhere else.
 *
 * Who writes what: a process its own row in `processes` and the operations that it pushes; the holder of a board's
 * `lock` that board's model; the holder of its `memory_lock` the memory columns of that board in all rows; the holder
 * of `lock` the rest.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "lock.h"
#include "node.h"
#include "time_model.h"

#include <sys/types.h>

enum {
  SIM_MACHINE_VERSION = 3,
  SIM_MAX_FAULTS = 64,
  SIM_FAULT_NAME = 56,
  SIM_NEWS = 256,
  SIM_MAX_OBJECTS = 1024,
  SIM_OBJECT_HOLDERS = 16,
  SIM_MAX_EVENTS = 65536,
};

#define SIM_MACHINE_MAGIC 0x4d49535550475547ull

enum sim_clock {
  SIM_CLOCK_REAL,   /* the machine's monotonic clock */
  SIM_CLOCK_MANUAL, /* stands still until gpu-sim advance-clock (or a test) moves it; who waits, waits for that */
  SIM_CLOCK_JUMP,   /* stands still while programs run; who waits moves it to where the wait ends */
};

struct sim_process {
  _Atomic uint32_t pid; /* 0: free */
  uint32_t driver;      /* it has called cuInit; else it only watches through NVML */
  uint32_t users;       /* libraries of this process that use the machine */
  uint64_t born;        /* start time, in the kernel's ticks: a pid alone may come again */
  uint64_t image;       /* what exec changes: a process that runs another program has left */
  uint64_t space;       /* pid namespace in which `pid` is its number */
  _Atomic uint64_t memory[SIM_MAX_GPUS];
  _Atomic uint32_t contexts[SIM_MAX_GPUS];
};

/* What other processes may hold too: memory or pools that were exported. It lives until its last holder lets go, and
 * the last descriptor that stands for it is closed. */
enum { SIM_OBJECT_FREE, SIM_OBJECT_CLAIMED, SIM_OBJECT_USED };

struct sim_object {
  _Atomic uint32_t used;
  uint32_t gpu;
  uint64_t id;
  uint64_t bytes;
  uint64_t inode;             /* of the descriptor that stands for it; 0: none, or those of descriptor.h do */
  _Atomic uint32_t described; /* how many descriptors were made of it, see descriptor.h; 0 once all are closed */
  struct {
    uint32_t process; /* slot + 1 */
    uint32_t count;
  } holders[SIM_OBJECT_HOLDERS];
};

/* An error that a call returns on command. */
struct sim_fault {
  char name[SIM_FAULT_NAME]; /* of the call; a star at its end stands for any rest */
  int32_t gpu;               /* -1: any */
  uint32_t code;
  int64_t remaining; /* times; -1: for ever */
};

/* What NVML reports as an event. */
struct sim_news {
  uint64_t type; /* nvmlEventType... */
  uint64_t data;
  uint32_t gpu;
};

struct sim_board {
  struct sim_lock lock;
  struct sim_lock memory_lock;
  _Atomic uint64_t memory_used; /* sum of the rows and objects, without what the driver reserves */
  _Atomic uint32_t lost;
  _Atomic uint64_t ecc[2][2]; /* corrected, uncorrected; volatile, aggregate */
  _Atomic uint32_t compute_mode;
  struct sim_model model;
};

struct sim_machine {
  uint64_t magic;
  uint32_t version;
  uint32_t clock; /* enum sim_clock */
  uint64_t size;
  uint64_t node_hash;
  uint64_t epoch_ns; /* wall clock minus the model's clock */
  _Atomic uint64_t virtual_ns;
  _Atomic uint32_t virtual_ticks; /* futex: counts the moves of the virtual clock */

  struct sim_lock lock;
  struct sim_node node;

  _Atomic uint32_t fault_count; /* zero is all that most calls look at */
  struct sim_fault faults[SIM_MAX_FAULTS];

  _Atomic uint32_t news_count; /* futex: the next one goes to news_count modulo SIM_NEWS */
  struct sim_news news[SIM_NEWS];

  _Atomic uint64_t ids;
  _Atomic uint32_t descriptors; /* were ever made: zero is all that most machines see */
  _Atomic uint32_t event_top;   /* events from here on were never used */
  _Atomic uint64_t swept_ns;
  struct sim_process processes[SIM_MAX_PROCESSES];
  struct sim_object objects[SIM_MAX_OBJECTS];
  struct sim_event events[SIM_MAX_EVENTS];
  struct sim_board boards[SIM_MAX_GPUS];
};

/*
 * Opens the machine, or makes it. A machine that nobody uses is made anew when GPU_SIM_NODE describes another one.
 * NULL: `why` says what is wrong.
 */
struct sim_machine *sim_machine_open(char *why, size_t size);
void sim_machine_close(struct sim_machine *machine);

/* The folder of the machine. */
void sim_machine_folder(char *folder, size_t size);

/* The file in it through which the contents of an object go from process to process. */
void sim_machine_object_path(uint64_t id, char *path, size_t size);

#endif
