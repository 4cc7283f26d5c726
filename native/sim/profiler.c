/* The profiler's switches: no tool listens here, so there is nothing to switch, as on a GPU without one. */
#include "driver.h"

static CUresult heed(const char *call) {
  CUcontext context;
  TRY(driver_enter(call));
  return driver_current(&context);
}

SIM_API CUresult cuProfilerStart(void) {
  return heed(__func__);
}

SIM_API CUresult cuProfilerStop(void) {
  return heed(__func__);
}
