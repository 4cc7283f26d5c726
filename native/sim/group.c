#define _GNU_SOURCE
#include "group.h"

#include "group_files.h"
#include "liveness.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Identifies a folder: its inode, which control groups never use again, and its birth, because the file system of a
 * double does. 0: there is no such folder. */
static uint64_t id_of(const char *path) {
  struct statx status;
  if (statx(AT_FDCWD, path, 0, STATX_TYPE | STATX_INO | STATX_BTIME, &status) != 0 || !S_ISDIR(status.stx_mode))
    return 0;
  uint64_t born = (status.stx_mask & STATX_BTIME) == 0
                      ? 0
                      : (uint64_t)status.stx_btime.tv_sec * 1000000000u + status.stx_btime.tv_nsec;
  return status.stx_ino ^ born << 16;
}

static bool has_groups(const struct sim_node *node) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/cgroup.controllers", node->control_groups);
  return access(path, F_OK) == 0;
}

static bool keeps_limits(const struct sim_node *node) {
  return sim_node_branch(node) >= SIM_LIMITS_BRANCH && node->memory_limits != SIM_LIMITS_OFF && has_groups(node);
}

void sim_group_begin(const struct sim_machine *machine) {
  if (machine->node.memory_limits == SIM_LIMITS_DMEM && keeps_limits(&machine->node))
    sim_group_files_begin(&machine->node);
}

static bool is_below(const char *path, const char *root) {
  size_t length = strlen(root);
  return strncmp(path, root, length) == 0 && path[length] == '/' && strstr(path, "/../") == NULL;
}

/* ---- the groups of the calling process ---- */

/* Its folder as the kernel names it. */
static bool find_kernels(const char *root, char *path, size_t size) {
  char line[PATH_MAX];
  bool found = false;
  FILE *file = fopen("/proc/self/cgroup", "re");
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "0::", 3) != 0) continue;
    line[strcspn(line, "\n")] = 0;
    const char *below = strcmp(line + 3, "/") == 0 ? "" : line + 3;
    found = (size_t)snprintf(path, size, "%s%s", root, below) < size;
  }
  if (file != NULL) fclose(file);
  return found;
}

static bool lists(const char *folder, unsigned int pid) {
  char path[PATH_MAX], line[32];
  bool found = false;
  if (snprintf(path, sizeof path, "%s/cgroup.procs", folder) >= (int)sizeof path) return false;
  FILE *file = fopen(path, "re");
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
    found = strtoul(line, NULL, 10) == pid;
  if (file != NULL) fclose(file);
  return found;
}

/* Its folder in a double of the control groups: plain folders, whose cgroup.procs a test writes. */
static bool find_listed(char *folder, size_t size, unsigned int pid) {
  if (lists(folder, pid)) return true;
  size_t length = strlen(folder);
  bool found = false;
  DIR *entries = opendir(folder);
  const struct dirent *entry;
  while (entries != NULL && !found && (entry = readdir(entries)) != NULL) {
    if (entry->d_name[0] == '.' || entry->d_type != DT_DIR) continue;
    if ((size_t)snprintf(folder + length, size - length, "/%s", entry->d_name) < size - length)
      found = find_listed(folder, size, pid);
    if (!found) folder[length] = 0;
  }
  if (entries != NULL) closedir(entries);
  return found;
}

static bool find_own(const char *root, char *path, size_t size) {
  struct statfs status;
  if (statfs(root, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC) return find_kernels(root, path, size);
  snprintf(path, size, "%s", root);
  return find_listed(path, size, (unsigned int)getpid());
}

void sim_group_join(struct sim_machine *machine, uint32_t process) {
  const char *root = machine->node.control_groups;
  char path[PATH_MAX];
  uint32_t depth = 0;
  if (find_own(root, path, sizeof path)) {
    /* The root is in the row too: in a cgroup namespace it is the container's own group. */
    while (depth < SIM_GROUP_DEPTH && strlen(path) >= strlen(root)) {
      atomic_store(&machine->processes[process].groups[depth++], id_of(path));
      char *end = strrchr(path, '/');
      if (end == NULL) break;
      *end = 0;
    }
  }
  for (; depth < SIM_GROUP_DEPTH; depth++)
    atomic_store(&machine->processes[process].groups[depth], 0);
}

/* ---- limits ---- */

static bool is_in(const struct sim_process *process, uint64_t id) {
  for (uint32_t i = 0; i < SIM_GROUP_DEPTH; i++)
    if (atomic_load(&process->groups[i]) == id) return true;
  return false;
}

/* Memory of the living processes of a group, without managed memory. */
static uint64_t used_by(const struct sim_machine *machine, uint64_t id, uint32_t gpu) {
  bool member[SIM_MAX_PROCESSES];
  uint64_t used = 0;
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &machine->processes[i];
    member[i] = atomic_load(&process->pid) != 0 && is_in(process, id) && sim_is_alive(machine, process);
    if (member[i]) used += atomic_load(&process->memory[gpu]) - atomic_load(&process->uncounted[gpu]);
  }
  for (uint32_t i = 0; i < SIM_MAX_OBJECTS; i++) {
    const struct sim_object *object = &machine->objects[i];
    if (atomic_load(&object->used) != SIM_OBJECT_USED || object->gpu != gpu) continue;
    for (uint32_t h = 0; h < SIM_OBJECT_HOLDERS; h++) {
      if (object->holders[h].count == 0) continue;
      if (member[object->holders[h].process - 1]) used += object->bytes;
      break;
    }
  }
  return used;
}

/* The entry of a group; NULL: it has no limits. */
static struct sim_group *entry_of(struct sim_machine *machine, uint64_t id) {
  for (uint32_t i = 0; id != 0 && i < SIM_MAX_GROUPS; i++)
    if (atomic_load(&machine->groups[i].id) == id) return &machine->groups[i];
  return NULL;
}

static uint64_t hard_of(struct sim_machine *machine, uint64_t id, uint32_t gpu) {
  const struct sim_group *group = gpu < SIM_MAX_GPUS ? entry_of(machine, id) : NULL;
  return group == NULL ? SIM_NO_LIMIT : atomic_load(&group->hard[gpu]);
}

uint64_t sim_group_room(struct sim_machine *machine, uint32_t process, uint32_t gpu) {
  uint64_t room = SIM_NO_LIMIT;
  for (uint32_t i = 0; i < SIM_GROUP_DEPTH; i++) {
    uint64_t id = atomic_load(&machine->processes[process].groups[i]);
    uint64_t hard = hard_of(machine, id, gpu);
    if (hard == SIM_NO_LIMIT) continue;
    uint64_t used = used_by(machine, id, gpu), left = used < hard ? hard - used : 0;
    if (left < room) room = left;
    if (machine->node.memory_limits == SIM_LIMITS_MISC) break;
  }
  return room;
}

bool sim_group_shown(struct sim_machine *machine, uint32_t process, uint32_t gpu, uint64_t *limit, uint64_t *used) {
  uint32_t depth = machine->node.memory_limits == SIM_LIMITS_MISC ? SIM_GROUP_DEPTH : 1;
  for (uint32_t i = 0; i < depth; i++) {
    uint64_t id = atomic_load(&machine->processes[process].groups[i]);
    *limit = hard_of(machine, id, gpu);
    if (*limit == SIM_NO_LIMIT) continue;
    *used = used_by(machine, id, gpu);
    return true;
  }
  return false;
}

/* Frees the entries of removed groups. The caller holds the machine's lock. */
static void drop_removed(struct sim_machine *machine) {
  for (uint32_t i = 0; i < SIM_MAX_GROUPS; i++) {
    struct sim_group *group = &machine->groups[i];
    uint64_t id = atomic_load(&group->id);
    if (id != 0 && id_of(group->path) != id) atomic_store(&group->id, 0);
  }
}

/* A new entry for a group; NULL: all are in use. The caller holds the machine's lock. */
static struct sim_group *new_entry(struct sim_machine *machine, const char *path) {
  for (struct sim_group *one = machine->groups; one < machine->groups + SIM_MAX_GROUPS; one++) {
    if (atomic_load(&one->id) != 0) continue;
    snprintf(one->path, sizeof one->path, "%s", path);
    for (uint32_t gpu = 0; gpu < SIM_MAX_GPUS; gpu++) {
      atomic_store(&one->soft[gpu], 0);
      atomic_store(&one->hard[gpu], SIM_NO_LIMIT);
    }
    return one;
  }
  return NULL;
}

static enum sim_group_result check(const struct sim_machine *machine, const char *path, uint64_t *id) {
  if (!keeps_limits(&machine->node)) return SIM_GROUP_UNSUPPORTED;
  *id = is_below(path, machine->node.control_groups) && strlen(path) < SIM_GROUP_PATH ? id_of(path) : 0;
  return *id == 0 ? SIM_GROUP_ABSENT : SIM_GROUP_DONE;
}

enum sim_group_result sim_group_set(struct sim_machine *machine, uint32_t gpu, const char *path,
                                    const struct sim_group_limits *limits) {
  uint64_t id;
  enum sim_group_result result = check(machine, path, &id);
  if (result != SIM_GROUP_DONE) return result;
  sim_lock_take(&machine->lock);
  drop_removed(machine);
  struct sim_group *group = entry_of(machine, id);
  if (group == NULL) group = new_entry(machine, path);
  if (group != NULL) {
    uint64_t before = atomic_load(&group->soft[gpu]);
    atomic_store(&group->soft[gpu], limits->soft);
    atomic_store(&group->hard[gpu], limits->hard);
    if (machine->node.memory_limits == SIM_LIMITS_DMEM)
      sim_group_files_write(&machine->node, gpu, path, before, limits->soft, limits->hard);
    atomic_store(&group->id, id);
    atomic_fetch_add(&machine->group_limits, 1);
  }
  sim_lock_give(&machine->lock);
  return group == NULL ? SIM_GROUP_FULL : SIM_GROUP_DONE;
}

enum sim_group_result sim_group_get(struct sim_machine *machine, uint32_t gpu, const char *path,
                                    struct sim_group_limits *limits) {
  uint64_t id;
  enum sim_group_result result = check(machine, path, &id);
  if (result != SIM_GROUP_DONE) return result;
  const struct sim_group *group = entry_of(machine, id);
  limits->soft = group == NULL ? 0 : atomic_load(&group->soft[gpu]);
  limits->hard = group == NULL ? SIM_NO_LIMIT : atomic_load(&group->hard[gpu]);
  limits->used = used_by(machine, id, gpu);
  return limits->soft == 0 && limits->hard == SIM_NO_LIMIT ? SIM_GROUP_UNLIMITED : SIM_GROUP_DONE;
}
