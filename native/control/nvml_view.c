#include "nvml_view.h"
#include "lock.h"
#include "nvml_driver.h"
#include <string.h>

static struct nvml_view view;
static bool opened;
static struct lock opening;

/* A listed MIG device is identifiable only if the limits file also has the PCI address of its GPU. */
static bool is_identifiable(const struct vgpu_device_identity *identity) {
  return strncmp(identity->uuid, "GPU-", 4) == 0 ||
         (strncmp(identity->uuid, "MIG-", 4) == 0 && identity->pci_bus_id[0] != '\0');
}

/* False: a file cannot be read now, so the next call tries again. */
static bool open_view(void) {
  const char *why;
  enum limits_status status = view.limits == NULL ? limits_open(&view.limits, &why) : LIMITS_PRESENT;
  if (status != LIMITS_PRESENT) return status == LIMITS_ABSENT;
  const struct vgpu_limits *limits = view.limits;
  view.hides = (limits->header.policy & VGPU_POLICY_DENY_UNLISTED) != 0 && limits->header.device_count > 0;
  for (uint32_t i = 0; i < limits->header.device_count && i < VGPU_MAX_DEVICES; i++)
    view.hides &= is_identifiable(&limits->devices[i]);
  view.ledger.usage = usage_open(&why);
  return view.ledger.usage != NULL;
}

const struct nvml_view *nvml_view(void) {
  if (!__atomic_load_n(&opened, __ATOMIC_ACQUIRE)) {
    lock_take(&opening);
    if (!opened) __atomic_store_n(&opened, open_view(), __ATOMIC_RELEASE);
    lock_release(&opening);
  }
  return &view;
}

/* False if the driver does not report the UUID. */
static bool find(const struct nvml_view *seen, nvmlDevice_t device, int *index) {
  char uuid[96];
  nvmlPciInfo_t pci;
  if (driver.nvmlDeviceGetUUID(device, uuid, sizeof uuid) != NVML_SUCCESS) return false;
  /* MIG instances of one GPU share its PCI address, so only their UUIDs identify them. */
  bool placed = strncmp(uuid, "MIG-", 4) != 0 && driver.nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_SUCCESS;
  *index = limits_find_device(seen->limits, uuid, placed ? pci.busId : NULL);
  return true;
}

int nvml_view_index(const struct nvml_view *seen, nvmlDevice_t device) {
  int index;
  return seen->limits != NULL && find(seen, device, &index) ? index : -1;
}

bool nvml_view_shows(const struct nvml_view *seen, nvmlDevice_t device) {
  int index;
  return !seen->hides || !find(seen, device, &index) || index >= 0;
}

bool nvml_view_owns(const struct nvml_view *seen, uint32_t pid) {
  const struct vgpu_usage *usage = seen->ledger.usage;
  struct process_identity self;
  process_self(&self);
  for (uint32_t i = 0; usage != NULL && i < usage_slot_high(usage); i++) {
    uint64_t owner = __atomic_load_n(&usage->slots[i].owner, __ATOMIC_ACQUIRE);
    uint32_t number = (uint32_t)(owner >> VGPU_SLOT_PID_SHIFT) & ((1u << VGPU_SLOT_PID_BITS) - 1);
    if ((owner & 3) == VGPU_SLOT_LIVE && number == pid && usage->slots[i].pid_namespace == self.pid_namespace)
      return true;
  }
  return false;
}
