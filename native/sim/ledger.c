#include "ledger.h"
#include "descriptor.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

uint64_t sim_ledger_capacity(const struct sim_machine *machine, uint32_t card) {
  uint64_t total = machine->node.gpus[card].memory_bytes;
  return machine->node.reserved_bytes < total ? total - machine->node.reserved_bytes : 0;
}

static bool exists(const struct sim_object *object) {
  return atomic_load(&object->used) == SIM_OBJECT_USED;
}

/* The board's total, from the rows and objects: after a process died between writing one and the other. */
static void sum(struct sim_machine *machine, uint32_t card) {
  uint64_t used = 0;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++)
    used += atomic_load(&machine->processes[i].memory[card]);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    const struct sim_object *object = &machine->objects[i];
    if (exists(object) && object->card == card) used += object->bytes;
  }
  atomic_store(&machine->boards[card].memory_used, used);
}

static void take_lock(struct sim_machine *machine, uint32_t card) {
  if (!sim_lock_take(&machine->boards[card].memory_lock)) sum(machine, card);
}

static void give_lock(struct sim_machine *machine, uint32_t card) {
  sim_lock_give(&machine->boards[card].memory_lock);
}

static void add(_Atomic uint64_t *counter, uint64_t bytes) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + bytes, memory_order_relaxed);
}

/* Frees an object that nobody holds any more. The caller has the lock. */
static void free_unheld(struct sim_machine *machine, struct sim_object *object) {
  for (uint32_t i = 0; i < SIM_OBJECT_HOLDERS; i++)
    if (object->holders[i].count > 0) return;
  if (atomic_load(&object->described) > 0 && sim_descriptor_is_open((uint32_t)(object - machine->objects))) return;
  char path[PATH_MAX];
  sim_machine_object_path(object->id, path, sizeof path);
  unlink(path);
  atomic_store(&object->used, SIM_OBJECT_FREE);
  add(&machine->boards[object->card].memory_used, -object->bytes);
}

/* Nobody tells when a descriptor is closed: whoever wants to know what a card has looks. The caller has the lock. */
static void sweep(struct sim_machine *machine, uint32_t card) {
  if (atomic_load(&machine->descriptors) == 0) return;
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    struct sim_object *object = &machine->objects[i];
    if (exists(object) && object->card == card && atomic_load(&object->described) > 0) free_unheld(machine, object);
  }
}

uint64_t sim_ledger_used(struct sim_machine *machine, uint32_t card) {
  take_lock(machine, card);
  sweep(machine, card);
  uint64_t used = atomic_load(&machine->boards[card].memory_used);
  give_lock(machine, card);
  return used;
}

bool sim_ledger_take(struct sim_machine *machine, uint32_t process, uint32_t card, uint64_t bytes) {
  take_lock(machine, card);
  if (atomic_load(&machine->boards[card].memory_used) + bytes > sim_ledger_capacity(machine, card))
    sweep(machine, card);
  uint64_t used = atomic_load(&machine->boards[card].memory_used), capacity = sim_ledger_capacity(machine, card);
  bool fits = used <= capacity && bytes <= capacity - used;
  if (fits) {
    add(&machine->processes[process].memory[card], bytes);
    add(&machine->boards[card].memory_used, bytes);
  }
  give_lock(machine, card);
  return fits;
}

void sim_ledger_give(struct sim_machine *machine, uint32_t process, uint32_t card, uint64_t bytes) {
  take_lock(machine, card);
  add(&machine->processes[process].memory[card], -bytes);
  add(&machine->boards[card].memory_used, -bytes);
  give_lock(machine, card);
}

uint64_t sim_ledger_of(struct sim_machine *machine, uint32_t process, uint32_t card) {
  take_lock(machine, card);
  uint64_t bytes = atomic_load(&machine->processes[process].memory[card]);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    const struct sim_object *object = &machine->objects[i];
    if (!exists(object) || object->card != card) continue;
    for (uint32_t h = 0; h < SIM_OBJECT_HOLDERS; h++) {
      if (object->holders[h].count == 0) continue;
      if (object->holders[h].process == process + 1) bytes += object->bytes;
      break;
    }
  }
  give_lock(machine, card);
  return bytes;
}

int sim_ledger_share(struct sim_machine *machine, uint32_t process, uint32_t card, uint64_t bytes, uint64_t inode) {
  int found = -1;
  take_lock(machine, card);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS && found < 0; i++) {
    uint32_t none = SIM_OBJECT_FREE;
    if (atomic_compare_exchange_strong(&machine->objects[i].used, &none, SIM_OBJECT_CLAIMED)) found = (int)i;
  }
  if (found >= 0) {
    struct sim_object *object = &machine->objects[found];
    memset(object->holders, 0, sizeof object->holders);
    object->card = card;
    object->bytes = bytes;
    object->inode = inode;
    atomic_store(&object->described, 0);
    object->id = atomic_fetch_add(&machine->ids, 1) + 1;
    object->holders[0].process = process + 1;
    object->holders[0].count = 1;
    atomic_store(&object->used, SIM_OBJECT_USED);
    add(&machine->processes[process].memory[card], -bytes);
  }
  give_lock(machine, card);
  return found;
}

int sim_ledger_find(struct sim_machine *machine, uint64_t inode) {
  for (int i = 0; i < SIM_MAX_OBJECTS; i++)
    if (exists(&machine->objects[i]) && machine->objects[i].inode == inode) return i;
  return -1;
}

bool sim_ledger_hold(struct sim_machine *machine, uint32_t process, uint32_t index, uint64_t id) {
  if (index >= SIM_MAX_OBJECTS) return false;
  struct sim_object *object = &machine->objects[index];
  uint32_t card = object->card;
  int own = -1, empty = -1;
  take_lock(machine, card);
  bool there = exists(object) && object->id == id && object->card == card;
  for (int i = SIM_OBJECT_HOLDERS - 1; i >= 0; i--) {
    if (object->holders[i].count > 0 && object->holders[i].process == process + 1) own = i;
    if (object->holders[i].count == 0) empty = i;
  }
  if (own < 0) own = empty;
  if (there && own >= 0) {
    object->holders[own].process = process + 1;
    object->holders[own].count++;
  }
  give_lock(machine, card);
  return there && own >= 0;
}

void sim_ledger_drop(struct sim_machine *machine, uint32_t process, uint32_t index) {
  struct sim_object *object = &machine->objects[index];
  uint32_t card = object->card;
  take_lock(machine, card);
  for (uint32_t i = 0; i < SIM_OBJECT_HOLDERS; i++) {
    if (object->holders[i].count == 0 || object->holders[i].process != process + 1) continue;
    object->holders[i].count--;
    break;
  }
  if (exists(object)) free_unheld(machine, object);
  give_lock(machine, card);
}

void sim_ledger_forget(struct sim_machine *machine, uint32_t process) {
  for (uint32_t card = 0; card < machine->node.count; card++) {
    take_lock(machine, card);
    atomic_store(&machine->processes[process].memory[card], 0);
    for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
      struct sim_object *object = &machine->objects[i];
      if (!exists(object) || object->card != card) continue;
      for (uint32_t h = 0; h < SIM_OBJECT_HOLDERS; h++)
        if (object->holders[h].process == process + 1) object->holders[h].count = 0;
      free_unheld(machine, object);
    }
    sum(machine, card);
    give_lock(machine, card);
  }
}
