/*
 * The files and the greeting that the node agent and the control library share. This header is their only definition:
 * `npm run abi` generates src/abi/vgpu-abi.ts from it.
 *
 * Layout rules: fixed width, naturally aligned, little endian, sizes in bytes, times in ns of CLOCK_MONOTONIC. Fields
 * are only added, in reserved space or at the end: `size` may grow, and `version` changes when an old reader would
 * misread the file.
 */
#ifndef VGPU_ABI_H
#define VGPU_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Where the container sees the directory of its slice, and the files in it. */
#define VGPU_CONTAINER_DIRECTORY "/etc/vcuda"
#define VGPU_LIMITS_FILE "vgpu.limits"
#define VGPU_USAGE_FILE "usage/vgpu.usage"
#define VGPU_SOCKET_FILE "vcuda.sock"
#define VGPU_ACTIVITY_FILE "usage/vgpu.activity"
/* Links to the activity files of the slices on the same GPU to which this one gives way: position of the GPU and
 * number, "00.0" or "00.10". */
#define VGPU_HIGH_DIRECTORY "high"

#define VGPU_ABI_VERSION 1u
#define VGPU_MAX_DEVICES 16u
#define VGPU_MAX_PROCESSES 512u
#define VGPU_MAX_HIGH 32u /* slices on a GPU whose activity another one reads */

/* "VGPULIMT", "VGPUUSED", "VGPUHELO" read as little endian numbers. */
#define VGPU_LIMITS_MAGIC 0x544d494c55504756ull
#define VGPU_USAGE_MAGIC 0x4445535555504756ull
#define VGPU_GREETING_MAGIC 0x4f4c454855504756ull

#define VGPU_SHARE_WHOLE 100u                /* `share` and `soft_limit` are hundredths of a GPU */
#define VGPU_PPM_WHOLE 1000000u              /* `grant_ppm` and `correction_ppm` are parts per million */
#define VGPU_FLOOR_WHOLE 10000u              /* `low_floor` is in ten-thousandths of a GPU */
#define VGPU_STEERING_STALE_NS 2000000000ull /* older steering values are ignored: the agent may have stopped */

/* ---- vgpu.limits: written by the agent, mapped read-only by the library ---- */

enum vgpu_policy {
  VGPU_POLICY_DENY_UNLISTED = 1u << 0, /* refuse memory on a GPU that is visible but not listed */
  VGPU_POLICY_UNENFORCED = 1u << 1,    /* the limits are not enforced: the library passes every call to the driver */
  /* The driver keeps the memory limits. Processes that start from now on charge managed memory only, which the driver
   * does not count. The agent sets and clears it while the container exists. */
  VGPU_POLICY_MEMORY_BY_DRIVER = 1u << 2,
  VGPU_POLICY_SUSPENDABLE = 1u << 3, /* the agent may suspend the slice, so every call looks at `suspended` */
};

enum vgpu_log_level {
  VGPU_LOG_NONE = 0,
  VGPU_LOG_ERROR = 1,
  VGPU_LOG_WARNING = 2,
  VGPU_LOG_INFO = 3,
  VGPU_LOG_DEBUG = 4
};

enum vgpu_live_flags {
  VGPU_LIVE_ALONE = 1u << 0, /* no other container used this GPU since the last steering tick */
};

enum vgpu_priority {
  VGPU_PRIORITY_NORMAL = 0,
  VGPU_PRIORITY_HIGH = 1, /* publishes claims in its activity file while it has work */
  VGPU_PRIORITY_LOW = 2,  /* launches only its floor while a high slice has work */
};

enum vgpu_suspended {
  VGPU_SUSPENDED_NOT = 0,
  VGPU_SUSPENDED_BEGINS = 1, /* or ends: a call may wait in the driver, and asks for the GPU */
  VGPU_SUSPENDED_AWAY = 2,   /* the slice has nothing on its GPUs; a call asks for them */
  VGPU_SUSPENDED_WAITS = 3,  /* the slice has not begun, since its GPU has no room: a call asks for it and waits */
};

struct vgpu_limits_header {
  uint64_t magic;
  uint32_t version;
  uint32_t size; /* of the whole file */
  uint32_t device_count;
  uint32_t policy;    /* enum vgpu_policy */
  uint32_t log_level; /* enum vgpu_log_level */
  /* Which copy of the live part is valid: live[sequence & 1]. The writer fills the other copy and then adds one (a
   * latch seqlock). A reader never waits, and a writer that dies half-way leaves the old values valid. */
  uint32_t sequence;
  char allocation[64]; /* id of the allocation, for log messages only */
  uint32_t suspended;  /* enum vgpu_suspended; written before the sequence that announces it */
  uint8_t reserved[28];
};

struct vgpu_device_identity {
  char uuid[64];       /* as NVML prints it: "GPU-..." or "MIG-..." */
  char pci_bus_id[32]; /* "00000000:3B:00.0"; used when the UUID is not available */
  /* not an identity, changed in place: per slice that this one gives way to, hundredths of the time for which its
   * claims are believed; 0 for those with which it takes turns */
  uint8_t high_believed[VGPU_MAX_HIGH];
};

/*
 * Values that may change while the container runs. A device without memory limit and with share 100 adds no overhead.
 */
struct vgpu_device_live {
  uint64_t memory_limit_bytes; /* 0: no limit */
  /* contexts and modules of the container, as the agent reads them from NVML; counted against the limit */
  uint64_t driver_overhead_bytes;
  uint64_t steered_at_ns;  /* when grant, correction and flags were published; 0: never */
  uint32_t share;          /* the container's own share in hundredths; 0 and >= 100: no limit */
  uint32_t soft_limit;     /* upper bound in hundredths while the GPU is otherwise idle; 0: hard limit at `share` */
  uint32_t grant_ppm;      /* what the agent allows now, between share and soft limit; 0: the library decides */
  uint32_t correction_ppm; /* factor on every charge; 0: none, same as 1000000 */
  uint32_t flags;          /* enum vgpu_live_flags */
  uint32_t generation;     /* counts changes of memory_limit_bytes, share and soft_limit */
  uint32_t others_ppm;     /* recent use of this GPU by everything else; 0 without VGPU_LIVE_ALONE: unknown */
  uint8_t priority;        /* enum vgpu_priority */
  /* of a low slice: number of high slices on this GPU that it gives way to; of another one with a soft limit: number of
   * slices that get back from it what it uses beyond its share; of another one: number of slices with which it takes
   * turns */
  uint8_t high_count;
  uint16_t low_floor; /* of a low slice: share in ten-thousandths of the GPU while a high slice has work; 0: 500 */
  uint64_t host_backed_limit_bytes; /* bytes that may be held on the host beyond the memory limit; 0: none */
};

struct vgpu_limits {
  struct vgpu_limits_header header;
  struct vgpu_device_identity devices[VGPU_MAX_DEVICES];
  struct vgpu_device_live live[2][VGPU_MAX_DEVICES];
};

/*
 * ---- vgpu.activity: written by the processes of one slice, read by slices that give way on the same GPU ----
 *
 * A claim is a lease: a process of a high slice publishes the time until which it has work on the GPU, computed from
 * the cost of its launches. So does a slice that gives way itself, while it uses no more than its share. It extends the
 * claim while it launches and waits, and clears it when its work is complete. The claim of a killed process expires.
 * Readers do not trust claims: one that lies further ahead than VGPU_CLAIM_MOST_NS is ignored.
 */
#define VGPU_CLAIM_MOST_NS 1000000000ull

/*
 * Turns: slices with a hard share that keep the GPU busy launch one after the other, see control/turn.h. Each slice
 * writes only its own entry for a GPU, and reads those of the others. All times expire by themselves, so a killed
 * process holds nobody up.
 */
struct vgpu_turn {
  uint64_t gpu;            /* hash of the GPU's UUID; 0: never used */
  uint64_t slice;          /* hash of the slice, which decides between equal levels */
  uint64_t busy_until_ns;  /* the slice launches, until then at least; 0: it does not */
  uint64_t waits_until_ns; /* it waits for the turn */
  uint64_t holds_until_ns; /* it has the turn: predicted end of its launches; 0: it has not */
  uint64_t level_ns;       /* GPU time charged while it took turns, divided by its share: the lowest one goes next */
  uint64_t used_ns;        /* GPU time charged in this turn */
  uint32_t ended;          /* futex: number of its turns that ended */
  uint32_t pauses;         /* 1: it launches without turns, because its program pauses */
};

struct vgpu_activity {
  uint64_t claimed_until_ns[VGPU_MAX_PROCESSES]; /* per process slot; 0: no work */
  struct vgpu_turn turns[VGPU_MAX_DEVICES];
};

/* ---- vgpu.usage: mapped read-write by every process of the container, read by the agent as untrusted input ---- */

/* Kinds of calls whose memory was refused; index of `denied`. */
enum vgpu_denied_api {
  VGPU_DENIED_ALLOC = 0,
  VGPU_DENIED_PITCH = 1,
  VGPU_DENIED_MANAGED = 2,
  VGPU_DENIED_ASYNC = 3,
  VGPU_DENIED_POOL = 4,
  VGPU_DENIED_VMM = 5,
  VGPU_DENIED_ARRAY = 6,
  VGPU_DENIED_MIPMAP = 7,
  VGPU_DENIED_GRAPH = 8,
  VGPU_DENIED_EXTERNAL = 9,
  VGPU_DENIED_CONTEXT = 10,
  VGPU_DENIED_KINDS = 16,
};

/* Result of the self-test at process start; bits of `self_test`. Limits are enforced only if all bits that they require
 * are set. */
enum vgpu_self_test {
  VGPU_TEST_DRIVER_FOUND = 1u << 0,    /* the real driver's functions were resolved */
  VGPU_TEST_LOOKUP_KNOWN = 1u << 1,    /* cuGetProcAddress returns functions that the library recognises */
  VGPU_TEST_DEVICES_MATCHED = 1u << 2, /* every visible GPU is listed in the limits */
  VGPU_TEST_SESSION_OPEN = 1u << 3,    /* the agent's socket accepted the greeting */
  VGPU_TEST_EVENTS_WORK = 1u << 4,     /* a launch was timed */
};

/* What the driver cannot checkpoint, bits of `obstacles`. A process that once had it keeps the bit. */
enum vgpu_obstacle {
  VGPU_OBSTACLE_MANAGED = 1u << 0,  /* managed memory */
  VGPU_OBSTACLE_SHARED = 1u << 1,   /* memory or events exported to other processes, or imported from them */
  VGPU_OBSTACLE_EXTERNAL = 1u << 2, /* memory of another interface, for example Vulkan */
};

/* `owner` of a process slot: state in the low 2 bits, pid in the next 22, start time in clock ticks (modulo 2^40)
 * above. */
enum vgpu_slot_state { VGPU_SLOT_FREE = 0, VGPU_SLOT_LIVE = 1, VGPU_SLOT_RECLAIMING = 2 };
#define VGPU_SLOT_PID_SHIFT 2
#define VGPU_SLOT_PID_BITS 22
#define VGPU_SLOT_START_SHIFT 24
#define VGPU_SLOT_START_BITS 40

/* A file of zeroes is a valid empty file, so the first process needs no lock to create it. */
struct vgpu_usage_header {
  uint64_t magic;
  uint32_t version;
  uint32_t size;
  uint32_t device_count;
  uint32_t slot_count;
  uint32_t slot_high;   /* slots from here on were never used */
  uint32_t object_high; /* objects from here on were never used; 0 while no memory was ever shared */
  /* The file behind the driver's descriptors of exported memory: its device node. */
  uint64_t descriptor_device;
  uint64_t descriptor_inode;
  uint32_t descriptor_known; /* enum vgpu_descriptor_file */
  char descriptor_path[140];
  uint64_t worked_at_ns; /* when a launch, copy or allocation last saw a new sequence of the limits */
  uint64_t asked;        /* calls that found the slice suspended: the agent resumes it */
  uint8_t reserved[48];
};

enum vgpu_descriptor_file { VGPU_DESCRIPTOR_NONE = 0, VGPU_DESCRIPTOR_WRITING = 1, VGPU_DESCRIPTOR_KNOWN = 2 };

/*
 * Memory that was exported to other processes. It is charged once, to no process, while a process holds it (by pointer,
 * handle or mapping) or a descriptor of it is open. The process that reclaims a dead process's slot clears its bit
 * among the holders, so memory whose exporter has ended stays charged while another process holds it. For layout
 * reasons object i is stored in process slot i, and its holders' bits in the ledger entries with index i; they are
 * otherwise unrelated to that process.
 */
struct vgpu_object {
  uint64_t state; /* odd: under construction; increases by two for each object that uses this place */
  uint64_t key;   /* hash of the handle that importers present; 0: importers use descriptors only */
  uint64_t bytes;
  uint32_t device; /* position in the limits file */
  /*
   * Number of descriptors created since none was open; 0: none is open. Descriptor n of object i has an open file
   * description lock (F_OFD_SETLK) on byte VGPU_DESCRIPTOR_LOCKS + VGPU_DESCRIPTORS_OF_OBJECT * i + n of their file.
   * The lock lasts while any copy of the descriptor is open.
   */
  uint32_t descriptors;
};
#define VGPU_DESCRIPTOR_LOCKS (1ull << 41)
#define VGPU_DESCRIPTORS_OF_OBJECT 65536u

struct vgpu_device_usage {
  /*
   * The token bucket as one number: the time at which its balance is zero. A value before now is credit, a value after
   * now is debt. A charge of c ns of GPU time at share s adds c / s. Because it is a single word, a killed process
   * cannot leave it inconsistent.
   */
  uint64_t level_at_ns;
  uint64_t soft_changed_at_ns; /* when soft_grant_ppm was last computed */
  uint32_t soft_grant_ppm; /* grant of the library itself under a soft limit while the agent grants nothing; 0: share */
  uint32_t level_share;    /* share in hundredths at which level_at_ns was charged; 0: not known */
  uint64_t alone_until_ns; /* when everything charged would be complete on an otherwise idle GPU */
  /* Memory that the driver uses for a context, as measured by a process of the container; 0 without `context_known`. */
  uint64_t context_bytes;
  uint32_t context_known;    /* 0: not measured yet */
  uint32_t context_measurer; /* process slot + 1 of the process that measures; 0: none */
  uint64_t floor_at_ns;      /* of a low slice: when its floor next allows a launch although a high slice has work */
  uint64_t preempted_ns;     /* time that launches waited for high slices; part of throttled_ns */
  uint64_t launches;
  uint64_t charged_ns;   /* GPU time charged, before correction */
  uint64_t throttled_ns; /* time that launches were throttled */
  uint64_t waits;
  uint64_t samples; /* timed launches */
  uint64_t sampled_ns;
  uint64_t unknown_launches; /* launches charged a guess because their cost was not learned yet */
  uint64_t lent_at_ns;       /* of a slice that gets back what it lends: see law_lent; 0: it does not */
  uint64_t denied[VGPU_DENIED_KINDS];
  uint64_t denied_bytes;
  uint64_t peak_bytes;
  uint64_t reclaimed_bytes; /* memory of dead processes that was reclaimed */
  uint64_t reserved3[5];
  uint8_t reserved4[192];
};

struct vgpu_process_slot {
  uint64_t owner; /* 0: free */
  /* inode of /proc/self/ns/pid: the pid is only meaningful to processes of the same namespace */
  uint64_t pid_namespace;
  uint64_t start_stack; /* from /proc/self/stat: differs after exec; 0: unknown */
  uint64_t registered_at_ns;
  uint32_t self_test; /* enum vgpu_self_test */
  uint32_t unhooked;  /* function variants that the driver returned and the library does not hook */
  char name[16];      /* comm, for messages */
  struct vgpu_object object;
  /* Host-backed bytes that the process holds beyond the memory limit, and those reserved for driver calls; see
   * host_backed_limit_bytes. Only slices with one GPU have any. */
  uint64_t host_backed_bytes;
  uint64_t host_backed_tentative_bytes;
  /* Equal to `owner`: the owner holds the mark of this slot, so it lives exactly as long as the mark. */
  uint64_t marked_owner;
  /* Equal to `owner`: `obstacles` is what this process has that the driver cannot checkpoint. Otherwise that is not
   * known, as for a process with an earlier library. */
  uint64_t obstacles_owner;
  uint32_t obstacles; /* enum vgpu_obstacle */
  /* Links to the activity of other slices that the process could not read at its last try; 0 with an earlier library */
  uint32_t links_unread;
};

/*
 * The mark of slot i is an open file description lock (F_OFD_SETLK) on byte VGPU_SLOT_MARKS + i of the usage file. The
 * description is kept open by a mapping that children do not inherit. The kernel therefore removes the mark when the
 * process ends or executes another program, whatever its namespaces are and whichever descriptors it closes.
 */
#define VGPU_SLOT_MARKS (1ull << 41)

/*
 * What a process launched, for the one that finds it dead. The upper half of `launched`: since when work of the process
 * may be incomplete, in ticks of 2^VGPU_LAUNCHED_TICK_SHIFT ns modulo 2^32; 0: it is complete. The lower half: by how
 * much the last charge moved level_at_ns, in us, with this bit set while a launch of unknown cost runs.
 */
#define VGPU_LAUNCHED_UNKNOWN (1ull << 31)
#define VGPU_LAUNCHED_TICK_SHIFT 20

/* One process on one device. The memory held on a device is the sum over all processes, so the death of a process
 * removes its own bytes and nothing else. */
struct vgpu_ledger_entry {
  uint64_t held_bytes;
  uint64_t tentative_bytes; /* reserved for driver calls in flight */
  uint64_t launched;        /* see VGPU_LAUNCHED_UNKNOWN; 0: the process never launched on this device */
  uint64_t object_holders;  /* entry i of device d: which of the process slots from 64 d on hold object i; d below 8 */
};

struct vgpu_usage {
  struct vgpu_usage_header header;
  struct vgpu_device_usage devices[VGPU_MAX_DEVICES];
  struct vgpu_process_slot slots[VGPU_MAX_PROCESSES];
  struct vgpu_ledger_entry ledger[VGPU_MAX_DEVICES][VGPU_MAX_PROCESSES];
};

/* ---- vcuda.sock: the library's greeting, distinguished from HTTP/2 by its first bytes ---- */

/*
 * Sent once after connect; no further data follows in either direction. The connection stays open for the life of the
 * process. When the agent restarts, it increments `sequence` in vgpu.limits after opening its socket, and a process
 * that notices the change connects and greets again. The agent takes the host pid from SO_PEERCRED; slot and pid only
 * tell it which entry of vgpu.usage claims to be that process.
 */
struct vgpu_greeting {
  uint64_t magic;
  uint32_t version;
  uint32_t size;
  uint32_t pid; /* in the pid namespace of the process */
  uint32_t slot;
  uint64_t start_ticks;
};

_Static_assert(sizeof(struct vgpu_limits_header) == 128, "vgpu.limits header");
_Static_assert(sizeof(struct vgpu_device_identity) == 128, "vgpu.limits identity");
_Static_assert(sizeof(struct vgpu_device_live) == 64, "vgpu.limits live part");
_Static_assert(offsetof(struct vgpu_device_live, host_backed_limit_bytes) == 56, "vgpu.limits host-backed limit");
_Static_assert(sizeof(struct vgpu_usage_header) == 256, "vgpu.usage header");
_Static_assert(sizeof(struct vgpu_device_usage) == 512, "vgpu.usage device");
_Static_assert(sizeof(struct vgpu_process_slot) == 128, "vgpu.usage slot");
_Static_assert(sizeof(struct vgpu_ledger_entry) == 32, "vgpu.usage ledger");
_Static_assert(sizeof(struct vgpu_turn) == 64, "vgpu.activity turn");
_Static_assert(sizeof(struct vgpu_activity) == 5120, "vgpu.activity");
_Static_assert(sizeof(struct vgpu_greeting) == 32, "greeting");

#endif
