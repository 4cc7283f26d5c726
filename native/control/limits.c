#include "limits.h"
#include "directory.h"
#include "os.h"
#include <errno.h>
#include <string.h>

static const char *unsound(const struct vgpu_limits *file) {
  if (file->header.magic != VGPU_LIMITS_MAGIC) return "it is not a limits file";
  if (file->header.version != VGPU_ABI_VERSION) return "its version is not supported";
  if (file->header.size < sizeof *file) return "it is too short";
  if (file->header.device_count > VGPU_MAX_DEVICES) return "it lists too many GPUs";
  return NULL;
}

static struct os_file mapped_file;

bool limits_are_in_reach(void) {
  char path[512];
  struct os_file there;
  vgpu_path(path, sizeof path, VGPU_LIMITS_FILE);
  return os_identify_path(path, &there) && there.device == mapped_file.device && there.inode == mapped_file.inode;
}

enum limits_status limits_open(const struct vgpu_limits **file, const char **why) {
  char path[512];
  int error;
  *file = NULL;
  *why = NULL;
  if (!os_is_directory(vgpu_directory())) {
    if (vgpu_directory_may_be_absent()) return LIMITS_ABSENT;
    *why = "the directory is missing, in a container";
    return LIMITS_BROKEN;
  }
  vgpu_path(path, sizeof path, VGPU_LIMITS_FILE);
  struct vgpu_limits *found = os_map_file(path, sizeof *found, false, &mapped_file, &error);
  if (found == NULL) {
    *why = error == ENOENT ? "it is missing" : error == EINVAL ? "it is too short" : "it cannot be read";
    return LIMITS_BROKEN;
  }
  *why = unsound(found);
  if (*why == NULL && (found->header.policy & VGPU_POLICY_UNENFORCED) == 0) {
    *file = found;
    return LIMITS_PRESENT;
  }
  os_unmap_memory(found, sizeof *found);
  return *why == NULL ? LIMITS_ABSENT : LIMITS_BROKEN;
}

bool limits_are_suspendable(void) {
  char path[512];
  struct os_file file;
  int error;
  vgpu_path(path, sizeof path, VGPU_LIMITS_FILE);
  struct vgpu_limits *found = os_map_file(path, sizeof *found, false, &file, &error);
  if (found == NULL) return false;
  bool suspendable = unsound(found) == NULL && (found->header.policy & VGPU_POLICY_SUSPENDABLE) != 0;
  os_unmap_memory(found, sizeof *found);
  return suspendable;
}

void limits_read(const struct vgpu_limits *file, uint32_t device, struct vgpu_device_live *live) {
  uint32_t sequence = __atomic_load_n(&file->header.sequence, __ATOMIC_ACQUIRE);
  /* The writer reuses a copy only at the second publication after it. One retry is therefore rare. The bound on retries
   * ends the loop if a malicious writer keeps changing the file. */
  for (int attempt = 0; attempt < 10; attempt++) {
    memcpy(live, &file->live[sequence & 1][device], sizeof *live);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint32_t after = __atomic_load_n(&file->header.sequence, __ATOMIC_ACQUIRE);
    if (after == sequence) return;
    sequence = after;
  }
}

bool limits_share_is_limited(const struct vgpu_device_live *live) {
  return live->share != 0 && live->share < VGPU_SHARE_WHOLE;
}

bool limits_steering_is_fresh(const struct vgpu_device_live *live, uint64_t now) {
  return live->steered_at_ns != 0 && now < live->steered_at_ns + VGPU_STEERING_STALE_NS;
}

static char folded(char letter) {
  return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Compares ignoring case, within `room` bytes of the text in the file. */
static bool same_text(const char *text, const char *listed, size_t room) {
  for (size_t i = 0; i < room; i++) {
    if (folded(text[i]) != folded(listed[i])) return false;
    if (text[i] == '\0') return i > 0;
  }
  return false;
}

int limits_find_device(const struct vgpu_limits *file, const char *uuid, const char *pci_bus_id) {
  const struct vgpu_device_identity *listed = file->devices;
  for (uint32_t i = 0; uuid != NULL && i < file->header.device_count; i++)
    if (same_text(uuid, listed[i].uuid, sizeof listed[i].uuid)) return (int)i;
  for (uint32_t i = 0; pci_bus_id != NULL && i < file->header.device_count; i++)
    if (same_text(pci_bus_id, listed[i].pci_bus_id, sizeof listed[i].pci_bus_id)) return (int)i;
  return -1;
}
