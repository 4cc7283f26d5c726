#define _GNU_SOURCE
#include "visible.h"
#include "control.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include "visible_list.h"
#include <string.h>
#include <unistd.h>

#define VARIABLE "CUDA_VISIBLE_DEVICES="
#define VARIABLE_LENGTH (sizeof VARIABLE - 1)

static struct lock lock; /* protects everything below; not held while the driver reads the variable */
static bool known_to_driver;
static unsigned callers; /* calls of cuInit in progress */
static char entry[VARIABLE_LENGTH + VGPU_MAX_DEVICES * (sizeof(((struct vgpu_device_identity *)0)->uuid) + 1)];
static char **own_environment;
static size_t room;
static char **program_environment;
static char *program_entry; /* NULL: the program has not set the variable */

static const struct vgpu_device_identity *listed(uint32_t position) {
  const struct vgpu_limits *limits = control.limits;
  uint32_t count = limits->header.device_count, order[VGPU_MAX_DEVICES];
  if (count > VGPU_MAX_DEVICES) count = VGPU_MAX_DEVICES;
  if (position >= count) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = i;
    const struct vgpu_device_identity *one = &limits->devices[i];
    for (;
         at > 0 && strncasecmp(limits->devices[order[at - 1]].pci_bus_id, one->pci_bus_id, sizeof one->pci_bus_id) > 0;
         at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
  return &limits->devices[order[position]];
}

static bool names(uint32_t position, const char *text, size_t length) {
  const struct vgpu_device_identity *identity = listed(position);
  return length < sizeof identity->uuid && strncasecmp(identity->uuid, text, length) == 0;
}

static size_t append(size_t length, const struct vgpu_device_identity *identity) {
  size_t add = strnlen(identity->uuid, sizeof identity->uuid);
  if (length + 1 + add + 1 > sizeof entry) return length;
  if (length > VARIABLE_LENGTH) entry[length++] = ',';
  memcpy(entry + length, identity->uuid, add);
  return length + add;
}

static void write_entry(const char *wanted) {
  size_t length = VARIABLE_LENGTH;
  uint32_t count = 0, chosen[VISIBLE_LIST_MOST];
  while (listed(count) != NULL)
    count++;
  memcpy(entry, VARIABLE, length);
  if (wanted != NULL) count = visible_list_read(wanted, count, count, names, chosen);
  for (uint32_t i = 0; i < count; i++)
    length = append(length, listed(wanted == NULL ? i : chosen[i]));
  entry[length] = '\0';
}

static bool may_hide(void) {
  if (!control_enforces() || (control.limits->header.policy & VGPU_POLICY_DENY_UNLISTED) == 0) return false;
  for (uint32_t i = 0; listed(i) != NULL; i++)
    if (!visible_list_is_uuid(listed(i)->uuid)) return false;
  return listed(0) != NULL;
}

static bool install_environment(void) {
  size_t count = 0;
  while (environ != NULL && environ[count] != NULL)
    count++;
  if (room < count + 2) {
    char **more = os_map_memory((count + 2) * sizeof *more);
    if (more == NULL) return false;
    /* The smaller array is not freed: another thread may be reading it. */
    own_environment = more;
    room = count + 2;
  }
  size_t kept = 0;
  program_entry = NULL;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(environ[i], VARIABLE, VARIABLE_LENGTH) != 0)
      own_environment[kept++] = environ[i];
    else if (program_entry == NULL)
      program_entry = environ[i];
  }
  write_entry(program_entry == NULL ? NULL : program_entry + VARIABLE_LENGTH);
  own_environment[kept++] = entry;
  own_environment[kept] = NULL;
  program_environment = environ;
  __atomic_store_n(&environ, own_environment, __ATOMIC_RELEASE);
  return true;
}

/* If the program set a variable meanwhile, the C library copied this array. The entry is then restored in the copy. */
static void restore_environment(void) {
  if (environ == own_environment) {
    __atomic_store_n(&environ, program_environment, __ATOMIC_RELEASE);
    return;
  }
  char **at = environ;
  while (at != NULL && *at != NULL && *at != entry)
    at++;
  if (at == NULL || *at == NULL) return;
  if (program_entry != NULL)
    *at = program_entry;
  else
    while ((at[0] = at[1]) != NULL)
      at++;
}

bool visible_begin(void) {
  lock_take(&lock);
  bool hides = !known_to_driver && may_hide() && (callers > 0 || install_environment());
  callers += hides;
  lock_release(&lock);
  return hides;
}

void visible_end(bool known) {
  lock_take(&lock);
  known_to_driver |= known;
  if (--callers == 0) restore_environment();
  lock_release(&lock);
}

static void reset(void) {
  lock.taken = 0;
  if (callers > 0) restore_environment();
  callers = 0;
  known_to_driver = false;
}
AFTER_FORK(reset)
