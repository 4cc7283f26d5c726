#include "ledger.h"
#include "descriptor.h"
#include "group.h"
#include "process_state.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

uint64_t sim_ledger_capacity(const struct sim_machine *machine, uint32_t gpu) {
  uint64_t total = machine->node.gpus[gpu].memory_bytes;
  return machine->node.reserved_bytes < total ? total - machine->node.reserved_bytes : 0;
}

static bool exists(const struct sim_object *object) {
  return atomic_load(&object->used) == SIM_OBJECT_USED;
}

/* Recomputes the board's total from rows and objects, after a process died between two writes. */
static void sum(struct sim_machine *machine, uint32_t gpu) {
  uint64_t used = 0;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++)
    used += atomic_load(&machine->processes[i].memory[gpu]);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    const struct sim_object *object = &machine->objects[i];
    if (exists(object) && object->gpu == gpu) used += object->bytes;
  }
  atomic_store(&machine->boards[gpu].memory_used, used);
}

static void take_lock(struct sim_machine *machine, uint32_t gpu) {
  if (!sim_lock_take(&machine->boards[gpu].memory_lock)) sum(machine, gpu);
}

static void give_lock(struct sim_machine *machine, uint32_t gpu) {
  sim_lock_give(&machine->boards[gpu].memory_lock);
}

static void add(_Atomic uint64_t *counter, uint64_t bytes) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + bytes, memory_order_relaxed);
}

/* Frees an object without holders. The caller holds the lock. */
static void free_unheld(struct sim_machine *machine, struct sim_object *object) {
  for (uint32_t i = 0; i < SIM_OBJECT_HOLDERS; i++)
    if (object->holders[i].count > 0) return;
  if (atomic_load(&object->described) > 0 && sim_descriptor_is_open((uint32_t)(object - machine->objects))) return;
  char path[PATH_MAX];
  sim_machine_object_path(object->id, path, sizeof path);
  unlink(path);
  atomic_store(&object->used, SIM_OBJECT_FREE);
  add(&machine->boards[object->gpu].memory_used, -object->bytes);
}

/* The kernel does not report closed descriptors, so every reader checks for them first. The caller holds the lock. */
static void sweep(struct sim_machine *machine, uint32_t gpu) {
  if (atomic_load(&machine->descriptors) == 0) return;
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    struct sim_object *object = &machine->objects[i];
    if (exists(object) && object->gpu == gpu && atomic_load(&object->described) > 0) free_unheld(machine, object);
  }
}

uint64_t sim_ledger_used(struct sim_machine *machine, uint32_t gpu) {
  take_lock(machine, gpu);
  sweep(machine, gpu);
  uint64_t used = atomic_load(&machine->boards[gpu].memory_used);
  give_lock(machine, gpu);
  return used;
}

/* A call that had begun before its process was locked reaches the ledger later. */
static void take_lock_running(struct sim_machine *machine, uint32_t process, uint32_t gpu) {
  take_lock(machine, gpu);
  const _Atomic uint32_t *state = &machine->processes[process].state;
  while (__builtin_expect(atomic_load_explicit(state, memory_order_relaxed) != SIM_PROCESS_RUNNING, 0)) {
    give_lock(machine, gpu);
    sim_process_wait_running(machine, process);
    take_lock(machine, gpu);
  }
}

/* The caller holds the lock. */
static bool has_room(struct sim_machine *machine, uint32_t gpu, uint64_t bytes) {
  if (atomic_load(&machine->boards[gpu].memory_used) + bytes > sim_ledger_capacity(machine, gpu)) sweep(machine, gpu);
  uint64_t used = atomic_load(&machine->boards[gpu].memory_used), capacity = sim_ledger_capacity(machine, gpu);
  return used <= capacity && bytes <= capacity - used;
}

uint64_t sim_ledger_evacuate(struct sim_machine *machine, uint32_t process, uint32_t gpu) {
  struct sim_process *row = &machine->processes[process];
  take_lock(machine, gpu);
  uint64_t bytes = atomic_exchange(&row->memory[gpu], 0);
  add(&row->host[gpu], bytes);
  add(&machine->boards[gpu].memory_used, -bytes);
  give_lock(machine, gpu);
  return bytes;
}

bool sim_ledger_return(struct sim_machine *machine, uint32_t process, uint32_t gpu) {
  struct sim_process *row = &machine->processes[process];
  take_lock(machine, gpu);
  uint64_t bytes = atomic_load(&row->host[gpu]);
  bool fits = has_room(machine, gpu, bytes);
  if (fits) {
    atomic_store(&row->host[gpu], 0);
    add(&row->memory[gpu], bytes);
    add(&machine->boards[gpu].memory_used, bytes);
  }
  give_lock(machine, gpu);
  return fits;
}

bool sim_ledger_is_shared(const struct sim_machine *machine, uint32_t process) {
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    const struct sim_object *object = &machine->objects[i];
    for (uint32_t h = 0; exists(object) && h < SIM_OBJECT_HOLDERS; h++)
      if (object->holders[h].count > 0 && object->holders[h].process == process + 1) return true;
  }
  return false;
}

static bool take(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes, bool managed) {
  bool limited = !managed && atomic_load(&machine->group_limits) > 0;
  if (limited) sim_group_join(machine, process);
  take_lock_running(machine, process, gpu);
  bool fits = has_room(machine, gpu, bytes) && (!limited || bytes <= sim_group_room(machine, process, gpu));
  if (fits) {
    add(&machine->processes[process].memory[gpu], bytes);
    if (managed) add(&machine->processes[process].uncounted[gpu], bytes);
    add(&machine->boards[gpu].memory_used, bytes);
  }
  give_lock(machine, gpu);
  return fits;
}

static void give(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes, bool managed) {
  take_lock_running(machine, process, gpu);
  add(&machine->processes[process].memory[gpu], -bytes);
  if (managed) add(&machine->processes[process].uncounted[gpu], -bytes);
  add(&machine->boards[gpu].memory_used, -bytes);
  give_lock(machine, gpu);
}

bool sim_ledger_take(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes) {
  return take(machine, process, gpu, bytes, false);
}

void sim_ledger_give(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes) {
  give(machine, process, gpu, bytes, false);
}

bool sim_ledger_take_managed(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes) {
  return take(machine, process, gpu, bytes, true);
}

void sim_ledger_give_managed(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes) {
  give(machine, process, gpu, bytes, true);
}

struct sim_ledger_view sim_ledger_whole(struct sim_machine *machine, uint32_t gpu) {
  return (struct sim_ledger_view){.total = sim_ledger_capacity(machine, gpu), .used = sim_ledger_used(machine, gpu)};
}

bool sim_ledger_limited(struct sim_machine *machine, uint32_t process, uint32_t gpu, struct sim_ledger_view *view) {
  uint64_t limit, held;
  if (atomic_load(&machine->group_limits) == 0) return false;
  struct sim_ledger_view whole = sim_ledger_whole(machine, gpu);
  sim_group_join(machine, process);
  take_lock(machine, gpu);
  bool shown = sim_group_shown(machine, process, gpu, &limit, &held);
  give_lock(machine, gpu);
  if (!shown || limit >= whole.total) return false;
  uint64_t left = whole.used < whole.total ? whole.total - whole.used : 0, own = held < limit ? limit - held : 0;
  *view = (struct sim_ledger_view){.total = limit, .used = limit - (own < left ? own : left)};
  return true;
}

uint64_t sim_ledger_of(struct sim_machine *machine, uint32_t process, uint32_t gpu) {
  take_lock(machine, gpu);
  uint64_t bytes = atomic_load(&machine->processes[process].memory[gpu]);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    const struct sim_object *object = &machine->objects[i];
    if (!exists(object) || object->gpu != gpu) continue;
    for (uint32_t h = 0; h < SIM_OBJECT_HOLDERS; h++) {
      if (object->holders[h].count == 0) continue;
      if (object->holders[h].process == process + 1) bytes += object->bytes;
      break;
    }
  }
  give_lock(machine, gpu);
  return bytes;
}

int sim_ledger_share(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t bytes, uint64_t inode) {
  int found = -1;
  take_lock(machine, gpu);
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS && found < 0; i++) {
    uint32_t none = SIM_OBJECT_FREE;
    if (atomic_compare_exchange_strong(&machine->objects[i].used, &none, SIM_OBJECT_CLAIMED)) found = (int)i;
  }
  if (found >= 0) {
    struct sim_object *object = &machine->objects[found];
    memset(object->holders, 0, sizeof object->holders);
    object->gpu = gpu;
    object->bytes = bytes;
    object->inode = inode;
    atomic_store(&object->described, 0);
    object->id = atomic_fetch_add(&machine->ids, 1) + 1;
    object->holders[0].process = process + 1;
    object->holders[0].count = 1;
    atomic_store(&object->used, SIM_OBJECT_USED);
    add(&machine->processes[process].memory[gpu], -bytes);
  }
  give_lock(machine, gpu);
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
  uint32_t gpu = object->gpu;
  int own = -1, empty = -1;
  take_lock(machine, gpu);
  bool there = exists(object) && object->id == id && object->gpu == gpu;
  for (int i = SIM_OBJECT_HOLDERS - 1; i >= 0; i--) {
    if (object->holders[i].count > 0 && object->holders[i].process == process + 1) own = i;
    if (object->holders[i].count == 0) empty = i;
  }
  if (own < 0) own = empty;
  if (there && own >= 0) {
    object->holders[own].process = process + 1;
    object->holders[own].count++;
  }
  give_lock(machine, gpu);
  return there && own >= 0;
}

void sim_ledger_drop(struct sim_machine *machine, uint32_t process, uint32_t index) {
  struct sim_object *object = &machine->objects[index];
  uint32_t gpu = object->gpu;
  take_lock(machine, gpu);
  for (uint32_t i = 0; i < SIM_OBJECT_HOLDERS; i++) {
    if (object->holders[i].count == 0 || object->holders[i].process != process + 1) continue;
    object->holders[i].count--;
    break;
  }
  if (exists(object)) free_unheld(machine, object);
  give_lock(machine, gpu);
}

void sim_ledger_forget(struct sim_machine *machine, uint32_t process) {
  for (uint32_t gpu = 0; gpu < machine->node.boards; gpu++) {
    take_lock(machine, gpu);
    atomic_store(&machine->processes[process].memory[gpu], 0);
    atomic_store(&machine->processes[process].host[gpu], 0);
    atomic_store(&machine->processes[process].uncounted[gpu], 0);
    for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
      struct sim_object *object = &machine->objects[i];
      if (!exists(object) || object->gpu != gpu) continue;
      for (uint32_t h = 0; h < SIM_OBJECT_HOLDERS; h++)
        if (object->holders[h].process == process + 1) object->holders[h].count = 0;
      free_unheld(machine, object);
    }
    sum(machine, gpu);
    give_lock(machine, gpu);
  }
}
