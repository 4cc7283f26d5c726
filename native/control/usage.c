#define _GNU_SOURCE
#include "usage.h"
#include "descriptor.h"
#include "directory.h"
#include "objects.h"
#include "os.h"
#include "share_law.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PID_MASK ((1ull << VGPU_SLOT_PID_BITS) - 1)
#define STATE_MASK 3ull
/* Detecting dead processes reads /proc, so it is rate limited. */
#define RECLAIM_EVERY_NS 100000000ull

static uint64_t owner_word(enum vgpu_slot_state state, const struct process_identity *process) {
  return process->start_ticks << VGPU_SLOT_START_SHIFT | (process->pid & PID_MASK) << VGPU_SLOT_PID_SHIFT | state;
}

/* A file of zeroes is valid, so creating the file and filling in the header need no lock. */
static void make_file(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return;
  if (lseek(fd, 0, SEEK_END) < (off_t)sizeof(struct vgpu_usage) && ftruncate(fd, sizeof(struct vgpu_usage)) != 0)
    errno = 0;
  close(fd);
}

static const char *complete_header(struct vgpu_usage_header *header) {
  uint64_t magic = __atomic_load_n(&header->magic, __ATOMIC_ACQUIRE);
  if (magic != VGPU_USAGE_MAGIC) {
    if (magic != 0) return "the usage file has the wrong magic number";
    header->version = VGPU_ABI_VERSION;
    header->size = sizeof(struct vgpu_usage);
    header->device_count = VGPU_MAX_DEVICES;
    header->slot_count = VGPU_MAX_PROCESSES;
    __atomic_store_n(&header->magic, VGPU_USAGE_MAGIC, __ATOMIC_RELEASE);
  }
  return header->version == VGPU_ABI_VERSION ? NULL : "the version of the usage file is not supported";
}

/* The mapped file. A restart of the container may replace it by another one. */
static struct os_file mapped_file;

/* Opens the mapped file again, to set or query marks. -1 on failure. */
static int open_marks(void) {
  char path[512];
  vgpu_path(path, sizeof path, VGPU_USAGE_FILE);
  return mapped_file.inode == 0 ? -1 : descriptor_probe(path, &mapped_file);
}

struct vgpu_usage *usage_open(const char **why) {
  char path[512];
  int error;
  vgpu_path(path, sizeof path, VGPU_USAGE_FILE);
  struct vgpu_usage *usage = os_map_file(path, sizeof *usage, true, &mapped_file, &error);
  if (usage == NULL && (error == ENOENT || error == EINVAL)) {
    make_file(path);
    usage = os_map_file(path, sizeof *usage, true, &mapped_file, &error);
  }
  *why = usage == NULL ? "the usage file cannot be written" : complete_header(&usage->header);
  if (*why == NULL) return usage;
  os_unmap_memory(usage, sizeof *usage);
  return NULL;
}

static void raise_slot_high(struct vgpu_usage *usage, uint32_t to) {
  uint32_t high = __atomic_load_n(&usage->header.slot_high, __ATOMIC_RELAXED);
  while (high < to &&
         !__atomic_compare_exchange_n(&usage->header.slot_high, &high, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
}

/* ---- what a process launched ---- */

#define CHARGE_MASK (VGPU_LAUNCHED_UNKNOWN - 1)
#define SINCE_SHIFT 32
/* A process may have died long before it is found. No kernel of a program that others wait for takes longer. */
#define DEAD_MOST_NS 10000000000ull
/* A launch of unknown cost that runs for longer holds the slice up no more. */
#define UNKNOWN_OLD_NS 2000000000ull

static uint32_t ticks(uint64_t at_ns) {
  return (uint32_t)(at_ns >> VGPU_LAUNCHED_TICK_SHIFT);
}

static void change_launched(struct vgpu_ledger_entry *entry, uint64_t mask, uint64_t value) {
  uint64_t before = __atomic_load_n(&entry->launched, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&entry->launched, &before, (before & ~mask) | value, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

void usage_note_charge(struct vgpu_ledger_entry *entry, uint64_t wall_ns) {
  uint64_t us = wall_ns / 1000 + 1;
  change_launched(entry, CHARGE_MASK, us < CHARGE_MASK ? us : CHARGE_MASK);
}

void usage_note_launched(struct vgpu_ledger_entry *entry, uint64_t since_ns, bool unknown) {
  uint32_t since = since_ns == 0 ? 0 : ticks(since_ns) == 0 ? 1 : ticks(since_ns);
  change_launched(entry, ~CHARGE_MASK, (uint64_t)since << SINCE_SHIFT | (unknown ? VGPU_LAUNCHED_UNKNOWN : 0));
}

/* How long ago it was launched; 0: all of it is complete. */
static uint64_t age_of(uint64_t launched, uint64_t now) {
  uint32_t since = (uint32_t)(launched >> SINCE_SHIFT);
  return since == 0 ? 0 : ((uint64_t)(uint32_t)(ticks(now) - since) << VGPU_LAUNCHED_TICK_SHIFT) + 1;
}

bool usage_unknown_runs(const struct vgpu_usage *usage, uint32_t device, uint32_t slot, uint64_t now) {
  uint32_t high = usage_slot_high(usage);
  for (uint32_t i = 0; i < high; i++) {
    uint64_t launched = __atomic_load_n(&usage->ledger[device][i].launched, __ATOMIC_RELAXED);
    if (i != slot && (launched & VGPU_LAUNCHED_UNKNOWN) != 0 && age_of(launched, now) < UNKNOWN_OLD_NS &&
        age_of(launched, now) != 0)
      return true;
  }
  return false;
}

/* A killed process used the GPU until it ended, as far as others know: until now. Its charge is changed to that. */
static void settle_dead(struct vgpu_device_usage *device, struct vgpu_ledger_entry *entry) {
  uint64_t launched = __atomic_exchange_n(&entry->launched, 0, __ATOMIC_ACQ_REL), now = os_now_ns();
  uint64_t age = age_of(launched, now), charged = (launched & CHARGE_MASK) * 1000;
  if (age == 0) return;
  uint32_t share_ppm = law_effective_ppm(__atomic_load_n(&device->level_share, __ATOMIC_RELAXED), 0, 0);
  uint64_t used = now - age + law_wall_ns(age < DEAD_MOST_NS ? age : DEAD_MOST_NS, share_ppm, 0);
  uint64_t level = __atomic_load_n(&device->level_at_ns, __ATOMIC_ACQUIRE), after;
  do {
    after = level <= used ? used : level - used < charged ? used : level - charged;
  } while (
      !__atomic_compare_exchange_n(&device->level_at_ns, &level, after, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  if (after > level)
    usage_count(&device->charged_ns, law_gpu_ns(after - level, share_ppm));
  else
    usage_count(&device->charged_ns, -law_gpu_ns(level - after, share_ppm));
}

static void clear_slot(struct vgpu_usage *usage, uint32_t slot) {
  for (uint32_t device = 0; device < VGPU_MAX_DEVICES; device++) {
    struct vgpu_ledger_entry *entry = &usage->ledger[device][slot];
    settle_dead(&usage->devices[device], entry);
    uint64_t bytes = __atomic_exchange_n(&entry->held_bytes, 0, __ATOMIC_ACQ_REL);
    bytes += __atomic_exchange_n(&entry->tentative_bytes, 0, __ATOMIC_ACQ_REL);
    if (bytes > 0) usage_count(&usage->devices[device].reclaimed_bytes, bytes);
  }
  __atomic_store_n(&usage->slots[slot].host_backed_bytes, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&usage->slots[slot].host_backed_tentative_bytes, 0, __ATOMIC_RELEASE);
  objects_drop_slot(usage, slot);
}

static bool owner_is_gone(const struct vgpu_process_slot *slot, uint64_t owner, const struct process_identity *self) {
  struct process_identity described = {
      .pid = (uint32_t)(owner >> VGPU_SLOT_PID_SHIFT & PID_MASK),
      .start_ticks = owner >> VGPU_SLOT_START_SHIFT,
      .pid_namespace = self->pid_namespace,
  };
  if ((owner & STATE_MASK) == VGPU_SLOT_LIVE) {
    described.pid_namespace = __atomic_load_n(&slot->pid_namespace, __ATOMIC_RELAXED);
    described.start_stack = __atomic_load_n(&slot->start_stack, __ATOMIC_RELAXED);
  }
  return process_is_gone(&described, self);
}

/* Makes the slot another owner's. False: another process was first. */
static bool pass_slot(struct vgpu_process_slot *slot, uint64_t *owner, uint64_t next, bool marked) {
  if (!__atomic_compare_exchange_n(&slot->owner, owner, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return false;
  __atomic_store_n(&slot->marked_owner, marked ? next : 0, __ATOMIC_RELEASE);
  return true;
}

/* Reclaims slot `i` if its owner is gone. `*marks`: the usage file, opened when it is first needed; -1 before. */
static bool reclaim_slot(struct vgpu_usage *usage, uint32_t i, const struct process_identity *self, int *marks) {
  struct vgpu_process_slot *slot = &usage->slots[i];
  uint64_t mark = VGPU_SLOT_MARKS + i, owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
  if ((owner & STATE_MASK) == VGPU_SLOT_FREE) return false;
  bool has_mark = __atomic_load_n(&slot->marked_owner, __ATOMIC_ACQUIRE) == owner;
  if (has_mark && *marks < 0) *marks = open_marks();
  if (has_mark && *marks >= 0 ? descriptor_marked_elsewhere(*marks, mark, 1) : !owner_is_gone(slot, owner, self))
    return false;
  /* The process that marks the slot clears it. If that process is killed as well, the slot holds its identity and can
   * be reclaimed again. */
  bool marked = *marks >= 0 && descriptor_mark(*marks, mark);
  bool passed = pass_slot(slot, &owner, owner_word(VGPU_SLOT_RECLAIMING, self), marked);
  if (passed) {
    clear_slot(usage, i);
    __atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
  }
  if (marked) descriptor_unmark(*marks, mark);
  return passed;
}

unsigned usage_reclaim(struct vgpu_usage *usage, const struct process_identity *self) {
  unsigned reclaimed = 0;
  uint32_t high = usage_slot_high(usage);
  int marks = -1;
  for (uint32_t i = 0; i < high; i++)
    reclaimed += reclaim_slot(usage, i, self, &marks);
  descriptor_close_probe(marks);
  return reclaimed;
}

uint32_t usage_launchers(const struct vgpu_usage *usage, uint32_t device) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < usage_slot_high(usage); i++)
    found += __atomic_load_n(&usage->slots[i].owner, __ATOMIC_RELAXED) != 0 &&
             __atomic_load_n(&usage->ledger[device][i].launched, __ATOMIC_RELAXED) != 0;
  return found;
}

bool usage_reclaim_rarely(struct vgpu_usage *usage, const struct process_identity *self) {
  static uint64_t next;
  uint64_t now = os_now_ns();
  uint64_t due = __atomic_load_n(&next, __ATOMIC_RELAXED);
  if (now < due ||
      !__atomic_compare_exchange_n(&next, &due, now + RECLAIM_EVERY_NS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return false;
  usage_reclaim(usage, self);
  return true;
}

/* Takes a free slot and marks it through `marks`, unless that is -1. */
static uint32_t take_slot(struct vgpu_usage *usage, const struct process_identity *self, int marks) {
  for (uint32_t i = 0; i < VGPU_MAX_PROCESSES; i++) {
    struct vgpu_process_slot *slot = &usage->slots[i];
    uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);
    if ((owner & STATE_MASK) != VGPU_SLOT_FREE) continue;
    /* Sums must include this slot before it can hold anything. */
    raise_slot_high(usage, i + 1);
    bool marked = marks >= 0 && descriptor_mark(marks, VGPU_SLOT_MARKS + i);
    if (!pass_slot(slot, &owner, owner_word(VGPU_SLOT_LIVE, self), marked)) {
      if (marked) descriptor_unmark(marks, VGPU_SLOT_MARKS + i);
      continue;
    }
    __atomic_store_n(&slot->pid_namespace, self->pid_namespace, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->start_stack, self->start_stack, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->registered_at_ns, os_now_ns(), __ATOMIC_RELAXED);
    slot->self_test = 0;
    slot->unhooked = 0;
    __atomic_store_n(&slot->links_unread, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->obstacles, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->obstacles_owner, owner_word(VGPU_SLOT_LIVE, self), __ATOMIC_RELEASE);
    memcpy(slot->name, self->name, sizeof slot->name);
    return i;
  }
  return USAGE_NO_SLOT;
}

static uint32_t take_free_slot(struct vgpu_usage *usage, const struct process_identity *self) {
  int marks = open_marks();
  void *kept = marks < 0 ? NULL : descriptor_keep_marks(marks);
  uint32_t slot = take_slot(usage, self, kept == NULL ? -1 : marks);
  if (slot == USAGE_NO_SLOT) os_unmap_memory(kept, DESCRIPTOR_KEPT_BYTES);
  descriptor_close_probe(marks);
  return slot;
}

/* Detecting dead processes reads one file of /proc per process. When many processes start together, only the first ones
 * do that. */
static bool others_just_registered(const struct vgpu_usage *usage) {
  uint64_t now = os_now_ns();
  uint32_t high = usage_slot_high(usage);
  for (uint32_t i = 0; i < high; i++) {
    const struct vgpu_process_slot *slot = &usage->slots[i];
    if ((__atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) & STATE_MASK) != VGPU_SLOT_LIVE) continue;
    uint64_t registered = __atomic_load_n(&slot->registered_at_ns, __ATOMIC_RELAXED);
    if (registered <= now && now - registered < RECLAIM_EVERY_NS) return true;
  }
  return false;
}

uint32_t usage_register(struct vgpu_usage *usage, const struct process_identity *self) {
  if (!others_just_registered(usage)) usage_reclaim(usage, self);
  uint32_t slot = take_free_slot(usage, self);
  if (slot == USAGE_NO_SLOT && usage_reclaim(usage, self) > 0) slot = take_free_slot(usage, self);
  return slot;
}
