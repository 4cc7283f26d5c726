/* What others do on a GPU, as far as it is known here: it tells how much of what is measured is this process's doing.
 */
#ifndef VGPU_OTHERS_H
#define VGPU_OTHERS_H

#include <stdint.h>

#define OTHERS_UNKNOWN UINT32_MAX

/* What everybody but this process uses of the device, in parts per million: 0 when the agent says that no other
 * container does, and no other process of this container does either. */
uint32_t others_ppm(uint32_t device);

#endif
