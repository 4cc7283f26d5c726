/* Corrects what the slice was charged. */
#ifndef VGPU_CHARGE_H
#define VGPU_CHARGE_H

#include <stdint.h>

/* Launches took `by_ns` more than they were charged (or less, if negative). */
void charge_adjust(uint32_t device, int64_t by_ns);

#endif
