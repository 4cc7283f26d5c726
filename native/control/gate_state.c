#include "gate_state.h"

static const uint32_t never_changes;

struct gate gate __attribute__((aligned(64))) = {.sequence_at = &never_changes, .device = GATE_OPEN};
