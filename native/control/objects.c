#include "objects.h"
#include "descriptor.h"
#include "fork.h"
#include "lock.h"
#include "usage.h"
#include <errno.h>
#include <string.h>

#define MOST_OBJECTS VGPU_MAX_PROCESSES
#define HOLDER_WORDS (VGPU_MAX_PROCESSES / 64)
/* Longer than the periods of CPU limits, in which a process may be stopped while it writes. */
#define FILE_PATIENCE_NS 1000000000ull

static struct lock lock;            /* protects `held` and this process's holder bits */
static uint32_t held[MOST_OBJECTS]; /* number of references of this process to each object */

uint64_t objects_key(const void *handle, size_t size) {
  uint64_t key = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < size; i++)
    key = (key ^ ((const unsigned char *)handle)[i]) * 0x100000001b3ull;
  return key | 1;
}

static uint32_t high(const struct vgpu_usage *usage) {
  uint32_t value = __atomic_load_n(&usage->header.object_high, __ATOMIC_ACQUIRE);
  return value < MOST_OBJECTS ? value : MOST_OBJECTS;
}

static void raise_high(struct vgpu_usage *usage, uint32_t to) {
  uint32_t value = __atomic_load_n(&usage->header.object_high, __ATOMIC_RELAXED);
  while (value < to && !__atomic_compare_exchange_n(&usage->header.object_high, &value, to, false, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_RELAXED)) {
  }
}

static uint64_t *holders(struct vgpu_usage *usage, uint32_t number, uint32_t slot) {
  return &usage->ledger[slot / 64][number].object_holders;
}

static void set_holder(struct vgpu_usage *usage, uint32_t number, uint32_t slot) {
  __atomic_fetch_or(holders(usage, number, slot), 1ull << slot % 64, __ATOMIC_SEQ_CST);
}

static void clear_holder(struct vgpu_usage *usage, uint32_t number, uint32_t slot) {
  __atomic_fetch_and(holders(usage, number, slot), ~(1ull << slot % 64), __ATOMIC_SEQ_CST);
}

/* Whether a process holds the object or a descriptor of it is open. Few slots are used, so the first word usually
 * decides. */
static bool is_charged(const struct vgpu_usage *usage, uint32_t number) {
  for (uint32_t i = 0; i < HOLDER_WORDS; i++)
    if (__atomic_load_n(&usage->ledger[i][number].object_holders, __ATOMIC_SEQ_CST) != 0) return true;
  return __atomic_load_n(&usage->slots[number].object.descriptors, __ATOMIC_SEQ_CST) != 0;
}

uint64_t objects_charged_slowly(const struct vgpu_usage *usage, uint32_t device) {
  uint64_t bytes = 0;
  for (uint32_t i = 0, end = high(usage); i < end; i++) {
    const struct vgpu_object *object = &usage->slots[i].object;
    if (__atomic_load_n(&object->device, __ATOMIC_RELAXED) != device || !is_charged(usage, i)) continue;
    uint64_t more = __atomic_load_n(&object->bytes, __ATOMIC_RELAXED);
    bytes = bytes + more < bytes ? UINT64_MAX : bytes + more;
  }
  return bytes;
}

/* Takes a free place. Only one process can advance its state. A place whose taker is killed in between stays unused. */
static bool take_place(struct vgpu_usage *usage, uint32_t number, uint64_t *state) {
  uint64_t *word = &usage->slots[number].object.state;
  *state = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  if ((*state & 1) != 0 || is_charged(usage, number)) return false;
  if (!__atomic_compare_exchange_n(word, state, *state + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return false;
  /* An importer may have set its bit meanwhile. Either it notices the new state and leaves, or it was first and keeps
   * the old object. */
  if (!is_charged(usage, number)) return true;
  __atomic_store_n(word, *state + 2, __ATOMIC_SEQ_CST);
  return false;
}

uint32_t objects_create(struct vgpu_usage *usage, uint32_t slot, uint32_t device, uint64_t bytes, uint64_t key) {
  uint32_t number = 0;
  uint64_t state = 0;
  lock_take(&lock);
  while (number < MOST_OBJECTS && !take_place(usage, number, &state))
    number++;
  if (number < MOST_OBJECTS) {
    struct vgpu_object *object = &usage->slots[number].object;
    __atomic_store_n(&object->key, key, __ATOMIC_RELAXED);
    __atomic_store_n(&object->device, device, __ATOMIC_RELAXED);
    __atomic_store_n(&object->bytes, bytes, __ATOMIC_RELAXED);
    raise_high(usage, number + 1);
    set_holder(usage, number, slot);
    __atomic_store_n(&object->state, state + 2, __ATOMIC_SEQ_CST);
    held[number] = 1;
  }
  lock_release(&lock);
  return number < MOST_OBJECTS ? number : OBJECT_NONE;
}

/* The caller holds the lock. False: the place was reused for another object meanwhile. */
static bool acquire(struct vgpu_usage *usage, uint32_t number, uint64_t state, uint32_t slot) {
  if (held[number] == 0) {
    set_holder(usage, number, slot);
    if (__atomic_load_n(&usage->slots[number].object.state, __ATOMIC_SEQ_CST) != state) {
      clear_holder(usage, number, slot);
      return false;
    }
  }
  held[number]++;
  return true;
}

uint32_t objects_acquire_by_key(struct vgpu_usage *usage, uint32_t slot, uint64_t key) {
  uint32_t found = OBJECT_NONE;
  lock_take(&lock);
  for (uint32_t i = 0, end = high(usage); i < end && found == OBJECT_NONE; i++) {
    const struct vgpu_object *object = &usage->slots[i].object;
    uint64_t state = __atomic_load_n(&object->state, __ATOMIC_ACQUIRE);
    bool same = (state & 1) == 0 && __atomic_load_n(&object->key, __ATOMIC_RELAXED) == key;
    if (same && is_charged(usage, i) && acquire(usage, i, state, slot)) found = i;
  }
  lock_release(&lock);
  return found;
}

static uint64_t locks_of(uint32_t number) {
  return VGPU_DESCRIPTOR_LOCKS + (uint64_t)VGPU_DESCRIPTORS_OF_OBJECT * number;
}

/* A descriptor's own mark is the one that all other descriptors see as locked. */
static bool refers_to(int fd, int probe, uint32_t number, uint32_t count) {
  for (uint32_t i = 0; i < count && i < VGPU_DESCRIPTORS_OF_OBJECT; i++)
    if (descriptor_marked_elsewhere(probe, locks_of(number) + i, 1) &&
        !descriptor_marked_elsewhere(fd, locks_of(number) + i, 1))
      return true;
  return false;
}

uint32_t objects_acquire_by_descriptor(struct vgpu_usage *usage, uint32_t slot, int fd) {
  int probe = high(usage) == 0 ? -1 : descriptor_probe_by(fd);
  uint32_t found = OBJECT_NONE;
  for (uint32_t i = 0, end = high(usage); i < end && probe >= 0 && found == OBJECT_NONE; i++) {
    const struct vgpu_object *object = &usage->slots[i].object;
    uint64_t state = __atomic_load_n(&object->state, __ATOMIC_ACQUIRE);
    uint32_t count = __atomic_load_n(&object->descriptors, __ATOMIC_ACQUIRE);
    if ((state & 1) != 0 || !refers_to(fd, probe, i, count)) continue;
    lock_take(&lock);
    if (acquire(usage, i, state, slot)) found = i;
    lock_release(&lock);
  }
  descriptor_close_probe(probe);
  return found;
}

void objects_release(struct vgpu_usage *usage, uint32_t slot, uint32_t number) {
  lock_take(&lock);
  if (held[number] > 0 && --held[number] == 0) clear_holder(usage, number, slot);
  lock_release(&lock);
}

void objects_set_key(struct vgpu_usage *usage, uint32_t number, uint64_t key) {
  __atomic_store_n(&usage->slots[number].object.key, key, __ATOMIC_RELAXED);
}

uint32_t objects_device(const struct vgpu_usage *usage, uint32_t number) {
  return __atomic_load_n(&usage->slots[number].object.device, __ATOMIC_RELAXED) % VGPU_MAX_DEVICES;
}

static uint32_t file_state(const struct vgpu_usage_header *header) {
  return __atomic_load_n(&header->descriptor_known, __ATOMIC_ACQUIRE);
}

static bool begin_file(struct vgpu_usage_header *header) {
  uint32_t none = VGPU_DESCRIPTOR_NONE;
  return __atomic_compare_exchange_n(&header->descriptor_known, &none, VGPU_DESCRIPTOR_WRITING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* The first descriptor in the container determines the file of all descriptors. Processes that export at the same time
 * wait for the first; if that was killed while it wrote, another one writes after FILE_PATIENCE_NS. A process that was
 * only stopped may write once more then: the same file. */
static bool learn_file(struct vgpu_usage_header *header, int fd) {
  struct os_file file;
  char path[sizeof header->descriptor_path];
  uint64_t until_ns = os_now_ns() + FILE_PATIENCE_NS;
  if (!os_identify(fd, &file)) return false;
  for (unsigned round = 1; file_state(header) != VGPU_DESCRIPTOR_KNOWN; round++) {
    if (!descriptor_path(fd, path, sizeof path)) return false;
    if (!begin_file(header) && os_now_ns() < until_ns) {
      os_backoff(round);
      continue;
    }
    header->descriptor_device = file.device;
    header->descriptor_inode = file.inode;
    memcpy(header->descriptor_path, path, sizeof path);
    __atomic_store_n(&header->descriptor_known, VGPU_DESCRIPTOR_KNOWN, __ATOMIC_RELEASE);
  }
  return header->descriptor_device == file.device && header->descriptor_inode == file.inode;
}

/* Sets the mark before the count is increased, so that every counted descriptor has its mark. */
bool objects_track_descriptor(struct vgpu_usage *usage, uint32_t number, int fd) {
  uint32_t *descriptors = &usage->slots[number].object.descriptors;
  if (!learn_file(&usage->header, fd)) return false;
  uint32_t count = __atomic_load_n(descriptors, __ATOMIC_SEQ_CST);
  while (count < VGPU_DESCRIPTORS_OF_OBJECT) {
    uint64_t mark = locks_of(number) + count;
    if (!descriptor_mark(fd, mark)) return false;
    if (__atomic_compare_exchange_n(descriptors, &count, count + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return true;
    /* The number became another descriptor's, which must be the only one with that mark. */
    descriptor_unmark(fd, mark);
  }
  return false;
}

/* The path was written by a process of the container, so it is not trusted: another file there would also hide the
 * locks. */
static int probe_file(const struct vgpu_usage_header *header) {
  struct os_file file = {.device = header->descriptor_device, .inode = header->descriptor_inode};
  char path[sizeof header->descriptor_path];
  errno = 0;
  if (file_state(header) != VGPU_DESCRIPTOR_KNOWN) return -1;
  memcpy(path, header->descriptor_path, sizeof path);
  path[sizeof path - 1] = '\0';
  return descriptor_probe(path, &file);
}

static bool is_alone(const struct vgpu_usage *usage, uint32_t slot) {
  for (uint32_t i = 0, end = usage_slot_high(usage); i < end; i++)
    if (i != slot && __atomic_load_n(&usage->slots[i].owner, __ATOMIC_SEQ_CST) != 0) return false;
  return true;
}

/* A container that was started again has device nodes of its own, and cannot query the descriptors of the one before
 * it, which have ended with it. True if that freed memory. */
static bool forget_file(struct vgpu_usage *usage) {
  uint32_t known = VGPU_DESCRIPTOR_KNOWN;
  bool freed = false;
  if (!__atomic_compare_exchange_n(&usage->header.descriptor_known, &known, VGPU_DESCRIPTOR_NONE, false,
                                   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return false;
  for (uint32_t i = 0, end = high(usage); i < end; i++)
    freed |= __atomic_exchange_n(&usage->slots[i].object.descriptors, 0, __ATOMIC_SEQ_CST) != 0;
  return freed;
}

bool objects_release_closed(struct vgpu_usage *usage, uint32_t slot) {
  bool freed = false;
  if (high(usage) == 0) return false;
  int probe = probe_file(&usage->header);
  bool is_of_another = probe < 0 && (errno == ENOENT || errno == ESTALE);
  if (is_of_another && is_alone(usage, slot)) return forget_file(usage);
  for (uint32_t i = 0, end = high(usage); i < end && probe >= 0; i++) {
    uint32_t *descriptors = &usage->slots[i].object.descriptors;
    uint32_t count = __atomic_load_n(descriptors, __ATOMIC_SEQ_CST);
    if (count == 0 || descriptor_marked_elsewhere(probe, locks_of(i), VGPU_DESCRIPTORS_OF_OBJECT)) continue;
    /* Resets the count only if it is unchanged: a descriptor may have been created meanwhile. */
    if (__atomic_compare_exchange_n(descriptors, &count, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) freed = true;
  }
  descriptor_close_probe(probe);
  return freed;
}

void objects_drop_slot(struct vgpu_usage *usage, uint32_t slot) {
  for (uint32_t i = 0, end = high(usage); i < end; i++)
    clear_holder(usage, i, slot);
}

static void reset(void) {
  memset(held, 0, sizeof held);
  lock.taken = 0;
}
AFTER_FORK(reset)
