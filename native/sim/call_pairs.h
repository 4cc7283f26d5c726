/*
 * Calls that come in pairs: a plain one, and one for programs whose default stream is the thread's own.
 */
#ifndef SIM_CALL_PAIRS_H
#define SIM_CALL_PAIRS_H

#include "driver.h"

/* A call that waits, and its entry for the per-thread default stream: `s` is the stream, `expression` what the call
 * does. */
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

/* The same for a call that does not wait and whose last parameter is its stream. */
#define QUEUED(name, parameters, arguments, expression)                                                                \
  SIM_API CUresult name(UNPACK parameters, CUstream s) {                                                               \
    TRY(driver_enter(#name));                                                                                          \
    return expression;                                                                                                 \
  }                                                                                                                    \
  SIM_API CUresult name##_ptsz(UNPACK parameters, CUstream s) {                                                        \
    return name(UNPACK arguments, own_stream(s));                                                                      \
  }

#endif
