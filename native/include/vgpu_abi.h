/*
 * The files and the greeting that the node agent and the control library share: this header is their one definition.
 * The TypeScript side has its numbers from here: src/abi/vgpu-abi.ts is written by `npm run abi`.
 *
 * Layout rules: fixed width, naturally aligned, little endian, sizes in bytes, times in ns of CLOCK_MONOTONIC. Fields
 * are only ever added, in reserved space or at the end: `size` may grow, `version` changes when an old reader would be
 * wrong.
 */
#ifndef VGPU_ABI_H
#define VGPU_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Where the container sees its allocation's directory, and what lies in it. */
#define VGPU_CONTAINER_DIRECTORY "/etc/vcuda"
#define VGPU_LIMITS_FILE "vgpu.limits"
#define VGPU_USAGE_FILE "usage/vgpu.usage"
#define VGPU_SOCKET_FILE "vcuda.sock"

#define VGPU_ABI_VERSION 1u
#define VGPU_MAX_DEVICES 16u
#define VGPU_MAX_PROCESSES 512u

/* "VGPULIMT", "VGPUUSED", "VGPUHELO" read as little endian numbers. */
#define VGPU_LIMITS_MAGIC 0x544d494c55504756ull
#define VGPU_USAGE_MAGIC 0x4445535555504756ull
#define VGPU_GREETING_MAGIC 0x4f4c454855504756ull

#define VGPU_SHARE_WHOLE 100u                /* `share` and `soft_limit` are hundredths of a GPU */
#define VGPU_PPM_WHOLE 1000000u              /* `grant_ppm` and `correction_ppm` are parts per million */
#define VGPU_STEERING_STALE_NS 2000000000ull /* older steering is not believed: the agent may be gone */

/* ---- vgpu.limits: written by the agent, mapped read-only by the library ---- */

enum vgpu_policy {
  VGPU_POLICY_DENY_UNLISTED = 1u << 0, /* refuse memory on a GPU that is visible but not listed */
};

enum vgpu_log_level {
  VGPU_LOG_NONE = 0,
  VGPU_LOG_ERROR = 1,
  VGPU_LOG_WARNING = 2,
  VGPU_LOG_INFO = 3,
  VGPU_LOG_DEBUG = 4
};

enum vgpu_live_flags {
  VGPU_LIVE_ALONE = 1u << 0, /* no other container used this GPU since the last steering */
};

struct vgpu_limits_header {
  uint64_t magic;
  uint32_t version;
  uint32_t size; /* of the whole file */
  uint32_t device_count;
  uint32_t policy;    /* enum vgpu_policy */
  uint32_t log_level; /* enum vgpu_log_level */
  /*
   * Which copy of the live part holds: live[sequence & 1]. The writer fills the other copy and then adds one (a seqlock
   * of the latch kind), so a reader never waits, and a writer that dies half-way leaves the old values valid.
   */
  uint32_t sequence;
  char allocation[64]; /* id of the allocation, for messages only */
  uint8_t reserved[32];
};

struct vgpu_device_identity {
  char uuid[64];       /* as NVML prints it: "GPU-..." or "MIG-..." */
  char pci_bus_id[32]; /* "00000000:3B:00.0"; used where the UUID cannot be asked for */
  uint8_t reserved[32];
};

/* What may change while the container runs. A device without memory limit and with share 100 costs the application
 * nothing. */
struct vgpu_device_live {
  uint64_t memory_limit_bytes;    /* 0: not limited */
  uint64_t driver_overhead_bytes; /* contexts and modules of the container, as the agent saw them in NVML: part of the
                                     limit */
  uint64_t steered_at_ns;         /* when grant, correction and flags were published; 0: never */
  uint32_t share;                 /* hundredths that are the container's own; 0 and >= 100: not limited */
  uint32_t soft_limit;     /* hundredths it may use while others leave the GPU idle; 0: hard, `share` is the most */
  uint32_t grant_ppm;      /* what the agent lets it use now, between share and soft limit; 0: the library decides */
  uint32_t correction_ppm; /* factor on every charge; 0: none, the same as 1000000 */
  uint32_t flags;          /* enum vgpu_live_flags */
  uint32_t generation;     /* counts changes of memory_limit_bytes, share and soft_limit */
  uint32_t others_ppm;     /* what everybody else used of this GPU lately; 0 without VGPU_LIVE_ALONE: not known */
  uint8_t reserved[12];
};

struct vgpu_limits {
  struct vgpu_limits_header header;
  struct vgpu_device_identity devices[VGPU_MAX_DEVICES];
  struct vgpu_device_live live[2][VGPU_MAX_DEVICES];
};

/* ---- vgpu.usage: mapped read-write by every process of the container, read by the agent as untrusted input ---- */

/* Why memory was refused, by kind of call; indexes `denied`. */
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

/* What a process found when it started; bits of `self_test`. Enforcing means: all that its limits ask for are set. */
enum vgpu_self_test {
  VGPU_TEST_DRIVER_FOUND = 1u << 0,    /* the real driver's functions were resolved */
  VGPU_TEST_LOOKUP_KNOWN = 1u << 1,    /* cuGetProcAddress answers with functions that the library recognises */
  VGPU_TEST_DEVICES_MATCHED = 1u << 2, /* every visible GPU is listed in the limits */
  VGPU_TEST_SESSION_OPEN = 1u << 3,    /* the agent's socket took the greeting */
  VGPU_TEST_EVENTS_WORK = 1u << 4,     /* a launch was timed */
};

/* `owner` of a process slot: state in the low 2 bits, pid in the next 22, start time in clock ticks (modulo 2^40)
 * above. */
enum vgpu_slot_state { VGPU_SLOT_FREE = 0, VGPU_SLOT_LIVE = 1, VGPU_SLOT_RECLAIMING = 2 };
#define VGPU_SLOT_PID_SHIFT 2
#define VGPU_SLOT_PID_BITS 22
#define VGPU_SLOT_START_SHIFT 24
#define VGPU_SLOT_START_BITS 40

/* All zeroes is a valid empty file, so whoever comes first needs no lock to make it. */
struct vgpu_usage_header {
  uint64_t magic;
  uint32_t version;
  uint32_t size;
  uint32_t device_count;
  uint32_t slot_count;
  uint32_t slot_high;   /* slots at and above were never used */
  uint32_t object_high; /* the same of objects: 0 while no memory was ever shared */
  /* The one file that the driver's descriptors of exported memory are of, its device node. */
  uint64_t descriptor_device;
  uint64_t descriptor_inode;
  uint32_t descriptor_known; /* enum vgpu_descriptor_file */
  char descriptor_path[140];
  uint8_t reserved[64];
};

enum vgpu_descriptor_file { VGPU_DESCRIPTOR_NONE = 0, VGPU_DESCRIPTOR_WRITING = 1, VGPU_DESCRIPTOR_KNOWN = 2 };

/*
 * Memory that was exported to other processes. It is charged once, to nobody's line in the ledger, for as long as a
 * process holds it (by pointer, handle or mapping) or a descriptor of it is open in any. A dead process's bit among the
 * holders is cleared by whoever reclaims its slot, so memory whose exporter has ended stays charged while another
 * process has it. Object i lies in process slot i, and the bits of its holders in the ledger's lines i: both were there
 * before objects were, and have nothing else to do with them.
 */
struct vgpu_object {
  uint64_t state; /* odd: being made; each object that takes this place moves it on by two */
  uint64_t key;   /* hash of the handle that importers come with; 0: they come with descriptors alone */
  uint64_t bytes;
  uint32_t device; /* position in the limits file */
  /*
   * How many descriptors were made since none was open; 0: none is. The one with number n has an open file lock
   * (F_OFD_SETLK) on byte VGPU_DESCRIPTOR_LOCKS + VGPU_DESCRIPTORS_OF_OBJECT * i + n of their file, which lasts as long
   * as a copy of it is open anywhere.
   */
  uint32_t descriptors;
};
#define VGPU_DESCRIPTOR_LOCKS (1ull << 41)
#define VGPU_DESCRIPTORS_OF_OBJECT 65536u

struct vgpu_device_usage {
  /*
   * The token bucket as one number: the time at which it is level. Before now it holds credit, after now a debt. A
   * charge of c ns of GPU time at share s moves it by c / s; wall time moves `now`. One word, so a process killed
   * anywhere leaves it sound.
   */
  uint64_t level_at_ns;
  uint64_t soft_changed_at_ns; /* when soft_grant_ppm was last decided */
  uint32_t soft_grant_ppm; /* what the library itself grants under a soft limit while the agent does not; 0: share */
  uint32_t reserved0;
  uint64_t alone_until_ns; /* when everything charged would be done if nobody else used the GPU */
  /* What the driver takes for a context, as a process of the container measured it; 0 with `context_known` too. */
  uint64_t context_bytes;
  uint32_t context_known;    /* 0: nobody has measured it yet */
  uint32_t context_measurer; /* process slot + 1 of who is about to; 0: nobody is */
  uint64_t reserved1[2];
  uint64_t launches;
  uint64_t charged_ns;   /* GPU time charged, before correction */
  uint64_t throttled_ns; /* time that launches waited */
  uint64_t waits;
  uint64_t samples; /* launches timed */
  uint64_t sampled_ns;
  uint64_t unknown_launches; /* charged by guess because their cost was not learned yet */
  uint64_t reserved2;
  uint64_t denied[VGPU_DENIED_KINDS];
  uint64_t denied_bytes;
  uint64_t peak_bytes;
  uint64_t reclaimed_bytes; /* given back on behalf of processes that died */
  uint64_t reserved3[5];
  uint8_t reserved4[192];
};

struct vgpu_process_slot {
  uint64_t owner;         /* 0: free */
  uint64_t pid_namespace; /* inode of /proc/self/ns/pid: only processes of the same one can judge the pid */
  uint64_t start_stack;   /* from /proc/self/stat: differs after exec; 0: not known */
  uint64_t registered_at_ns;
  uint32_t self_test; /* enum vgpu_self_test */
  uint32_t unhooked;  /* variants of hooked functions that the driver handed out and the library did not recognise */
  char name[16];      /* comm, for messages */
  struct vgpu_object object;
  uint8_t reserved[40];
};

/* One process on one device. What a device holds is the sum of these: a dead process takes its own bytes with it,
 * nothing else. */
struct vgpu_ledger_entry {
  uint64_t held_bytes;
  uint64_t tentative_bytes; /* reserved for driver calls that are not decided yet */
  uint64_t last_charge_ns;  /* by how much the last charge moved level_at_ns: given back if the process is killed */
  uint64_t object_holders;  /* line i of device d: which of the process slots from 64 d on hold object i; d below 8 */
};

struct vgpu_usage {
  struct vgpu_usage_header header;
  struct vgpu_device_usage devices[VGPU_MAX_DEVICES];
  struct vgpu_process_slot slots[VGPU_MAX_PROCESSES];
  struct vgpu_ledger_entry ledger[VGPU_MAX_DEVICES][VGPU_MAX_PROCESSES];
};

/* ---- vcuda.sock: the library's greeting, told apart from HTTP/2 by its first bytes ---- */

/*
 * Sent once after connect, nothing follows and nothing is answered; the connection stays open as long as the process
 * lives. When it ended because the agent did, the next agent moves `sequence` of vgpu.limits once its socket is open,
 * and a process that notices connects and greets anew. The agent believes SO_PEERCRED for the host pid; slot and pid
 * only tell it which line of vgpu.usage claims to be that process.
 */
struct vgpu_greeting {
  uint64_t magic;
  uint32_t version;
  uint32_t size;
  uint32_t pid; /* as the process sees itself */
  uint32_t slot;
  uint64_t start_ticks;
};

_Static_assert(sizeof(struct vgpu_limits_header) == 128, "vgpu.limits header");
_Static_assert(sizeof(struct vgpu_device_identity) == 128, "vgpu.limits identity");
_Static_assert(sizeof(struct vgpu_device_live) == 64, "vgpu.limits live part");
_Static_assert(sizeof(struct vgpu_usage_header) == 256, "vgpu.usage header");
_Static_assert(sizeof(struct vgpu_device_usage) == 512, "vgpu.usage device");
_Static_assert(sizeof(struct vgpu_process_slot) == 128, "vgpu.usage slot");
_Static_assert(sizeof(struct vgpu_ledger_entry) == 32, "vgpu.usage ledger");
_Static_assert(sizeof(struct vgpu_greeting) == 32, "greeting");

#endif
