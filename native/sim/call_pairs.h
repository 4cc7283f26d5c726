/* Calls with two variants: for the legacy default stream, and for the per-thread default stream. */
#ifndef SIM_CALL_PAIRS_H
#define SIM_CALL_PAIRS_H

#include "driver.h"

/* Defines a synchronous call and its variant for the per-thread default stream. `s` is the stream, `expression` the
 * work of the call. */
#define UNPACK(...) __VA_ARGS__
#define WAITING(name, parameters, arguments, expression)                                                               \
  static CUresult in_##name(CUstream s, UNPACK parameters) {                                                           \
    TRY(driver_enter(#name));                                                                                          \
    return expression;                                                                                                 \
  }                                                                                                                    \
  SIM_API CUresult name(UNPACK parameters) {                                                                           \
    return in_##name(NULL, UNPACK arguments);                                                                          \
  }                                                                                                                    \
  SIM_API CUresult name##_ptds(UNPACK parameters) {                                                                    \
    return in_##name(CU_STREAM_PER_THREAD, UNPACK arguments);                                                          \
  }

/* Defines both variants of an asynchronous call whose last parameter is its stream. */
#define QUEUED(name, parameters, arguments, expression)                                                                \
  SIM_API CUresult name(UNPACK parameters, CUstream s) {                                                               \
    TRY(driver_enter(#name));                                                                                          \
    return expression;                                                                                                 \
  }                                                                                                                    \
  SIM_API CUresult name##_ptsz(UNPACK parameters, CUstream s) {                                                        \
    return name(UNPACK arguments, own_stream(s));                                                                      \
  }

#endif
