/*
 * User objects: something of the program that lives for as long as somebody holds a reference to it: the program, a
 * graph, or what a graph was instantiated to.
 */
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

/* A reference of its own to each object that another holds. False: no memory, nothing is held more. */
bool user_objects_copy(struct user_objects *to, const struct user_objects *from);

/* More references for a holder: `moved` from the caller, or new ones. */
CUresult user_objects_hold(struct user_objects *objects, CUuserObject object, unsigned int count, bool moved);

/* Fewer. The holder must have as many. */
CUresult user_objects_drop(struct user_objects *objects, CUuserObject object, unsigned int count);

/* The holder ends; objects that nobody holds any more are destroyed. */
void user_objects_free(struct user_objects *objects);

#endif
