#include "user_object.h"

#include "driver.h"

#include <limits.h>
#include <stdlib.h>

enum { OBJECT_MAGIC = 0x4f424a45 };

struct CUuserObject_st {
  uint32_t magic;
  _Atomic unsigned int references;
  void *data;
  CUhostFn destroy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the references of graphs */

static CUresult check(CUuserObject object) {
  return object != NULL && object->magic == OBJECT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void retain(CUuserObject object, unsigned int count) {
  atomic_fetch_add(&object->references, count);
}

static void release(CUuserObject object, unsigned int count) {
  if (atomic_fetch_sub(&object->references, count) != count) return;
  object->magic = 0;
  object->destroy(object->data);
  free(object);
}

static struct held_object *find(const struct user_objects *objects, CUuserObject object) {
  for (size_t i = 0; i < objects->count; i++)
    if (objects->at[i].object == object) return &objects->at[i];
  return NULL;
}

bool user_objects_copy(struct user_objects *to, const struct user_objects *from) {
  pthread_mutex_lock(&lock);
  struct held_object *copied = from->count == 0 ? NULL : calloc(from->count, sizeof *copied);
  bool good = from->count == 0 || copied != NULL;
  if (good) *to = (struct user_objects){copied, from->count};
  for (size_t i = 0; good && i < from->count; i++) {
    copied[i] = (struct held_object){from->at[i].object, 1};
    retain(copied[i].object, 1);
  }
  pthread_mutex_unlock(&lock);
  return good;
}

void user_objects_free(struct user_objects *objects) {
  for (size_t i = 0; i < objects->count; i++)
    release(objects->at[i].object, objects->at[i].count);
  free(objects->at);
  *objects = (struct user_objects){0};
}

CUresult user_objects_hold(struct user_objects *objects, CUuserObject object, unsigned int count, bool moved) {
  TRY(check(object));
  NEED(count > 0 && count <= INT_MAX);
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  struct held_object *held = find(objects, object);
  if (held == NULL) {
    struct held_object *larger = realloc(objects->at, (objects->count + 1) * sizeof *larger);
    if (larger == NULL) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
      objects->at = larger;
      held = &larger[objects->count++];
      *held = (struct held_object){object, 0};
    }
  }
  if (held != NULL) {
    held->count += count;
    if (!moved) retain(object, count);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult user_objects_drop(struct user_objects *objects, CUuserObject object, unsigned int count) {
  TRY(check(object));
  pthread_mutex_lock(&lock);
  struct held_object *held = find(objects, object);
  bool good = held != NULL && count > 0 && count <= held->count;
  if (good) {
    held->count -= count;
    if (held->count == 0) *held = objects->at[--objects->count];
  }
  pthread_mutex_unlock(&lock);
  NEED(good);
  release(object, count);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy, unsigned int references,
                                    unsigned int flags) {
  ENTER();
  NEED(object != NULL && destroy != NULL && references > 0 && references <= INT_MAX);
  NEED(flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  CUuserObject made = calloc(1, sizeof *made);
  if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  made->magic = OBJECT_MAGIC;
  made->references = references;
  made->data = data;
  made->destroy = destroy;
  *object = made;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  ENTER();
  TRY(check(object));
  NEED(count > 0 && count <= INT_MAX);
  retain(object, count);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  ENTER();
  TRY(check(object));
  NEED(count > 0 && count <= atomic_load(&object->references));
  release(object, count);
  return CUDA_SUCCESS;
}
