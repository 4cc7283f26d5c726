/* Prints every offset, size and constant of vgpu_abi.h, one "name value" a line: test/abi/vgpu-abi.test.ts compares
 * them. */
#include "vgpu_abi.h"
#include <stdio.h>

#define NUMBER(name) printf("%s %llu\n", #name, (unsigned long long)(name))
#define FIELD(type, field)                                                                                             \
  printf("%s.%s %zu %zu\n", #type, #field, offsetof(struct type, field), sizeof(((struct type *)0)->field))
#define SIZE(type) printf("%s.structSize %zu\n", #type, sizeof(struct type))

static void limits(void) {
  FIELD(vgpu_limits_header, magic);
  FIELD(vgpu_limits_header, version);
  FIELD(vgpu_limits_header, size);
  FIELD(vgpu_limits_header, device_count);
  FIELD(vgpu_limits_header, policy);
  FIELD(vgpu_limits_header, log_level);
  FIELD(vgpu_limits_header, sequence);
  FIELD(vgpu_limits_header, allocation);
  SIZE(vgpu_limits_header);
  FIELD(vgpu_device_identity, uuid);
  FIELD(vgpu_device_identity, pci_bus_id);
  SIZE(vgpu_device_identity);
  FIELD(vgpu_device_live, memory_limit_bytes);
  FIELD(vgpu_device_live, driver_overhead_bytes);
  FIELD(vgpu_device_live, steered_at_ns);
  FIELD(vgpu_device_live, share);
  FIELD(vgpu_device_live, soft_limit);
  FIELD(vgpu_device_live, grant_ppm);
  FIELD(vgpu_device_live, correction_ppm);
  FIELD(vgpu_device_live, flags);
  FIELD(vgpu_device_live, generation);
  FIELD(vgpu_device_live, others_ppm);
  SIZE(vgpu_device_live);
  FIELD(vgpu_limits, devices);
  FIELD(vgpu_limits, live);
  SIZE(vgpu_limits);
}

static void usage(void) {
  FIELD(vgpu_usage_header, magic);
  FIELD(vgpu_usage_header, version);
  FIELD(vgpu_usage_header, size);
  FIELD(vgpu_usage_header, device_count);
  FIELD(vgpu_usage_header, slot_count);
  FIELD(vgpu_usage_header, slot_high);
  FIELD(vgpu_usage_header, object_high);
  SIZE(vgpu_usage_header);
  FIELD(vgpu_device_usage, level_at_ns);
  FIELD(vgpu_device_usage, soft_changed_at_ns);
  FIELD(vgpu_device_usage, soft_grant_ppm);
  FIELD(vgpu_device_usage, alone_until_ns);
  FIELD(vgpu_device_usage, launches);
  FIELD(vgpu_device_usage, charged_ns);
  FIELD(vgpu_device_usage, throttled_ns);
  FIELD(vgpu_device_usage, waits);
  FIELD(vgpu_device_usage, samples);
  FIELD(vgpu_device_usage, sampled_ns);
  FIELD(vgpu_device_usage, unknown_launches);
  FIELD(vgpu_device_usage, denied);
  FIELD(vgpu_device_usage, denied_bytes);
  FIELD(vgpu_device_usage, peak_bytes);
  FIELD(vgpu_device_usage, reclaimed_bytes);
  SIZE(vgpu_device_usage);
  FIELD(vgpu_process_slot, owner);
  FIELD(vgpu_process_slot, pid_namespace);
  FIELD(vgpu_process_slot, start_stack);
  FIELD(vgpu_process_slot, registered_at_ns);
  FIELD(vgpu_process_slot, self_test);
  FIELD(vgpu_process_slot, unhooked);
  FIELD(vgpu_process_slot, name);
  FIELD(vgpu_process_slot, object);
  SIZE(vgpu_process_slot);
  FIELD(vgpu_object, state);
  FIELD(vgpu_object, key);
  FIELD(vgpu_object, bytes);
  FIELD(vgpu_object, device);
  FIELD(vgpu_object, descriptors);
  SIZE(vgpu_object);
  FIELD(vgpu_ledger_entry, held_bytes);
  FIELD(vgpu_ledger_entry, tentative_bytes);
  FIELD(vgpu_ledger_entry, last_charge_ns);
  FIELD(vgpu_ledger_entry, object_holders);
  SIZE(vgpu_ledger_entry);
  FIELD(vgpu_usage, devices);
  FIELD(vgpu_usage, slots);
  FIELD(vgpu_usage, ledger);
  SIZE(vgpu_usage);
}

static void greeting(void) {
  FIELD(vgpu_greeting, magic);
  FIELD(vgpu_greeting, version);
  FIELD(vgpu_greeting, size);
  FIELD(vgpu_greeting, pid);
  FIELD(vgpu_greeting, slot);
  FIELD(vgpu_greeting, start_ticks);
  SIZE(vgpu_greeting);
}

static void constants(void) {
  NUMBER(VGPU_ABI_VERSION);
  NUMBER(VGPU_MAX_DEVICES);
  NUMBER(VGPU_MAX_PROCESSES);
  NUMBER(VGPU_LIMITS_MAGIC);
  NUMBER(VGPU_USAGE_MAGIC);
  NUMBER(VGPU_GREETING_MAGIC);
  NUMBER(VGPU_PPM_WHOLE);
  NUMBER(VGPU_STEERING_STALE_NS);
  NUMBER(VGPU_POLICY_DENY_UNLISTED);
  NUMBER(VGPU_LOG_NONE);
  NUMBER(VGPU_LOG_ERROR);
  NUMBER(VGPU_LOG_WARNING);
  NUMBER(VGPU_LOG_INFO);
  NUMBER(VGPU_LOG_DEBUG);
  NUMBER(VGPU_LIVE_ALONE);
  NUMBER(VGPU_DENIED_ALLOC);
  NUMBER(VGPU_DENIED_PITCH);
  NUMBER(VGPU_DENIED_MANAGED);
  NUMBER(VGPU_DENIED_ASYNC);
  NUMBER(VGPU_DENIED_POOL);
  NUMBER(VGPU_DENIED_VMM);
  NUMBER(VGPU_DENIED_ARRAY);
  NUMBER(VGPU_DENIED_MIPMAP);
  NUMBER(VGPU_DENIED_GRAPH);
  NUMBER(VGPU_DENIED_EXTERNAL);
  NUMBER(VGPU_DENIED_CONTEXT);
  NUMBER(VGPU_TEST_DRIVER_FOUND);
  NUMBER(VGPU_TEST_LOOKUP_KNOWN);
  NUMBER(VGPU_TEST_DEVICES_MATCHED);
  NUMBER(VGPU_TEST_SESSION_OPEN);
  NUMBER(VGPU_TEST_EVENTS_WORK);
  NUMBER(VGPU_SLOT_FREE);
  NUMBER(VGPU_SLOT_LIVE);
  NUMBER(VGPU_SLOT_RECLAIMING);
  NUMBER(VGPU_SLOT_PID_SHIFT);
  NUMBER(VGPU_SLOT_PID_BITS);
  NUMBER(VGPU_SLOT_START_SHIFT);
}

int main(void) {
  limits();
  usage();
  greeting();
  constants();
  printf("VGPU_LIMITS_FILE %s\nVGPU_USAGE_FILE %s\n", VGPU_LIMITS_FILE, VGPU_USAGE_FILE);
  return 0;
}
