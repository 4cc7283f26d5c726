#include "charge.h"
#include "bucket.h"
#include "turn.h"
#include "yield.h"

void charge_adjust(uint32_t device, int64_t by_ns) {
  if (by_ns == 0) return;
  bucket_adjust(device, by_ns);
  yield_adjust(device, by_ns);
  turn_adjust(device, by_ns);
}
