#include "fork.h"
#include "capture.h"
#include "contexts.h"
#include "cost.h"
#include "devices.h"
#include "gate.h"
#include "ledger.h"
#include "objects.h"
#include "pools.h"
#include "sampler.h"
#include "track.h"
#include "visible.h"

void after_fork(void) {
  ledger_after_fork();
  contexts_after_fork();
  objects_after_fork();
  track_after_fork();
  devices_after_fork();
  pools_after_fork();
  cost_after_fork();
  sampler_after_fork();
  gate_after_fork();
  capture_after_fork();
  visible_after_fork();
}
