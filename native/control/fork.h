/* What every part forgets in a child made by fork. */
#ifndef VGPU_FORK_H
#define VGPU_FORK_H

void after_fork(void);

#endif
