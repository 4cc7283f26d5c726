#define _GNU_SOURCE
#include "visible.h"
#include "control.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include <string.h>
#include <unistd.h>

#define VARIABLE "CUDA_VISIBLE_DEVICES="
#define VARIABLE_LENGTH (sizeof VARIABLE - 1)

static struct lock lock; /* of everything below; not held while the driver reads */
static bool known_to_driver;
static unsigned users; /* calls of cuInit under way */
static char entry[VARIABLE_LENGTH + VGPU_MAX_DEVICES * (sizeof(((struct vgpu_device_identity *)0)->uuid) + 1)];
static char **ours;
static size_t room;
static char **theirs;
static char *their_entry; /* NULL: the program has not set the variable */

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

static bool is_uuid(const char *text) {
  return strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0;
}

/* The listed GPU that an item of the program's own list names: by number, or by the beginning of its UUID. */
static const struct vgpu_device_identity *chosen(const char *item, size_t length) {
  uint32_t number = 0;
  if (length >= 4 && is_uuid(item)) {
    for (uint32_t i = 0; listed(i) != NULL; i++)
      if (length < sizeof listed(i)->uuid && strncasecmp(listed(i)->uuid, item, length) == 0) return listed(i);
    return NULL;
  }
  for (size_t i = 0; i < length; i++) {
    if (item[i] < '0' || item[i] > '9' || number > VGPU_MAX_DEVICES) return NULL;
    number = number * 10 + (uint32_t)(item[i] - '0');
  }
  return length == 0 ? NULL : listed(number);
}

static size_t append(size_t length, const struct vgpu_device_identity *identity) {
  size_t add = strnlen(identity->uuid, sizeof identity->uuid);
  if (length + 1 + add + 1 > sizeof entry) return length;
  if (length > VARIABLE_LENGTH) entry[length++] = ',';
  memcpy(entry + length, identity->uuid, add);
  return length + add;
}

/* As the driver reads it: a list ends at the first item that names no GPU. */
static void write_entry(const char *wanted) {
  size_t length = VARIABLE_LENGTH;
  memcpy(entry, VARIABLE, length);
  for (uint32_t i = 0; wanted == NULL && listed(i) != NULL; i++)
    length = append(length, listed(i));
  while (wanted != NULL && *wanted != '\0') {
    size_t item = strcspn(wanted, ",");
    const struct vgpu_device_identity *identity = chosen(wanted, item);
    if (identity == NULL) break;
    length = append(length, identity);
    wanted += item + (wanted[item] == ',');
  }
  entry[length] = '\0';
}

static bool may_hide(void) {
  if (!control_enforces() || (control.limits->header.policy & VGPU_POLICY_DENY_UNLISTED) == 0) return false;
  for (uint32_t i = 0; listed(i) != NULL; i++)
    if (!is_uuid(listed(i)->uuid)) return false;
  return listed(0) != NULL;
}

static bool exchange(void) {
  size_t count = 0;
  while (environ != NULL && environ[count] != NULL)
    count++;
  if (room < count + 2) {
    char **more = os_map_memory((count + 2) * sizeof *more);
    if (more == NULL) return false;
    /* The smaller one stays: another thread may be reading it. */
    ours = more;
    room = count + 2;
  }
  size_t kept = 0;
  their_entry = NULL;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(environ[i], VARIABLE, VARIABLE_LENGTH) != 0)
      ours[kept++] = environ[i];
    else if (their_entry == NULL)
      their_entry = environ[i];
  }
  write_entry(their_entry == NULL ? NULL : their_entry + VARIABLE_LENGTH);
  ours[kept++] = entry;
  ours[kept] = NULL;
  theirs = environ;
  __atomic_store_n(&environ, ours, __ATOMIC_RELEASE);
  return true;
}

/* The program may have set variables meanwhile: then the C library has copied ours, and that copy is mended. */
static void restore(void) {
  if (environ == ours) {
    __atomic_store_n(&environ, theirs, __ATOMIC_RELEASE);
    return;
  }
  char **at = environ;
  while (at != NULL && *at != NULL && *at != entry)
    at++;
  if (at == NULL || *at == NULL) return;
  if (their_entry != NULL)
    *at = their_entry;
  else
    while ((at[0] = at[1]) != NULL)
      at++;
}

bool visible_begin(void) {
  lock_take(&lock);
  bool hides = !known_to_driver && may_hide() && (users > 0 || exchange());
  users += hides;
  lock_release(&lock);
  return hides;
}

void visible_end(bool known) {
  lock_take(&lock);
  known_to_driver |= known;
  if (--users == 0) restore();
  lock_release(&lock);
}

static void reset(void) {
  lock.taken = 0;
  if (users > 0) restore();
  users = 0;
  known_to_driver = false;
}
AFTER_FORK(reset)
