/* Profiler control. No profiler is attached, so the calls have no effect, as on a real GPU. */
#include "driver.h"

static CUresult ignore(const char *call) {
  CUcontext context;
  TRY(driver_enter(call));
  return driver_current(&context);
}

SIM_API CUresult cuProfilerStart(void) {
  return ignore(__func__);
}

SIM_API CUresult cuProfilerStop(void) {
  return ignore(__func__);
}
