/* Groups the sizes of copies and fills, so that the gate learns one cost per group. */
#ifndef VGPU_MAGNITUDE_H
#define VGPU_MAGNITUDE_H

#include <stdint.h>

/* Four groups per power of two. */
static inline uint64_t magnitude(uint64_t bytes) {
  if (bytes < 4) return bytes;
  unsigned int top = 63u ^ (unsigned int)__builtin_clzll(bytes);
  return ((uint64_t)top << 2) + (bytes >> (top - 2)) - 4;
}

#endif
