/* User objects: resources of the program with a reference count. References are held by the program, graphs and
 * executable graphs. */
#ifndef SIM_USER_OBJECT_H
#define SIM_USER_OBJECT_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

struct held_object {
  CUuserObject object;
  unsigned int count;
};

/* The references of one holder. */
struct user_objects {
  struct held_object *at;
  size_t count;
};

/* Adds one reference to each object in `from`. False: out of memory; nothing is added. */
bool user_objects_copy(struct user_objects *to, const struct user_objects *from);

/* Adds references: `moved` from the caller, or new ones. */
CUresult user_objects_hold(struct user_objects *objects, CUuserObject object, unsigned int count, bool moved);

/* Drops references. The holder must have as many. */
CUresult user_objects_drop(struct user_objects *objects, CUuserObject object, unsigned int count);

/* Drops all references of the holder. Objects without references are destroyed. */
void user_objects_free(struct user_objects *objects);

#endif
