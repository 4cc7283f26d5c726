/* Kernels of known duration, for tests and for the programs of benchmarks: on the simulated GPU and on a real one. */
#ifndef GPU_KERNELS_H
#define GPU_KERNELS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Kernels whose names contain their duration; the parameter of busy_us is the duration in microseconds. The simulated
 * driver reads the names. A real GPU runs the loops, whose rounds in a millisecond TEST_ROUNDS_PER_MS tells (gpu/run).
 */
static const struct {
  const char *declaration;
  double us; /* of one launch, or of one unit of the first parameter */
} gpu_durations[] = {
    {".visible .entry busy_us(.param .u64 us)", 0},
    {".visible .entry touch_us(.param .u64 us, .param .u64 at, .param .u64 bytes)", 0},
    {".visible .entry busy_us_1()", 1},
    {".visible .entry busy_us_20()", 20},
    {".visible .entry busy_us_200()", 200},
    {".visible .entry busy_ms_2()", 2000},
    {".visible .entry busy_ms_20()", 20000},
    {".visible .entry block_us_100()", 100},
};

/* The text of the kernels, as PTX. */
__attribute__((unused)) static const char *gpu_kernels(void) {
  static char text[8192];
  if (text[0] != 0) return text;
  const char *given = getenv("TEST_ROUNDS_PER_MS");
  double rounds_per_us = given == NULL ? 0 : strtod(given, NULL) / 1000;
  size_t at = (size_t)snprintf(text, sizeof text, ".version 7.0\n.target sm_70\n.address_size 64\n");
  for (size_t i = 0; i < sizeof gpu_durations / sizeof gpu_durations[0]; i++) {
    double us = gpu_durations[i].us;
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "%s {\n"
                           "  .reg .pred %%p<2>; .reg .u64 %%n, %%x; .shared .align 8 .u64 sink;\n"
                           "  mov.u64 %%n, %llu; mov.u64 %%x, 1;\n",
                           gpu_durations[i].declaration, (unsigned long long)(rounds_per_us * (us == 0 ? 1 : us)));
    if (us == 0)
      at += (size_t)snprintf(text + at, sizeof text - at, "  ld.param.u64 %%x, [us]; mul.lo.u64 %%n, %%n, %%x;\n");
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "again:\n"
                           "  mad.lo.u64 %%x, %%x, 6364136223846793005, 1442695040888963407;\n"
                           "  setp.gt.u64 %%p0, %%n, 1; sub.u64 %%n, %%n, 1; @%%p0 bra again;\n"
                           "  setp.eq.u64 %%p1, %%x, 42; @%%p1 st.volatile.shared.u64 [sink], %%x;\n"
                           "  ret;\n}\n");
  }
  if (at >= sizeof text) abort();
  return text;
}

#endif
