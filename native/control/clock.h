/*
 * The kernel's clocks. They are read past the C library's clock_gettime, which a preloaded library may replace
 * (libfaketime does): a clock that runs faster would speed a share up.
 */
#ifndef VGPU_CLOCK_H
#define VGPU_CLOCK_H

#include <time.h>

typedef int clock_function(clockid_t clock, struct timespec *time);

void clock_read(clockid_t clock, struct timespec *time);

/* The function that replaces the kernel's in tests that run in virtual time (native/virtual); NULL in all others, and
 * in the library that the agent installs. */
clock_function *clock_of_test(void);

#endif
