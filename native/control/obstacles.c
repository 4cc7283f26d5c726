#include "obstacles.h"
#include "control.h"

void obstacles_add(enum vgpu_obstacle obstacle) {
  uint32_t *obstacles = &control.ledger.usage->slots[control.ledger.slot].obstacles;
  if ((__atomic_load_n(obstacles, __ATOMIC_RELAXED) & (uint32_t)obstacle) != 0) return;
  __atomic_fetch_or(obstacles, (uint32_t)obstacle, __ATOMIC_SEQ_CST);
}
