/* Texture and surface objects: store their description for queries. No kernel reads through them. */
#include "array.h"
#include "memory.h"

#include <stdlib.h>

struct object {
  unsigned long long handle;
  bool surface, viewed;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  CUDA_RESOURCE_VIEW_DESC view;
  struct object *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;
static unsigned long long handles;

static CUresult check_resource(const CUDA_RESOURCE_DESC *resource) {
  NEED(resource != NULL && resource->flags == 0);
  switch (resource->resType) {
  case CU_RESOURCE_TYPE_ARRAY:
    return array_check(resource->res.array.hArray);
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    NEED(resource->res.mipmap.hMipmappedArray != NULL);
    NEED(resource->res.mipmap.hMipmappedArray->magic == ARRAY_MAGIC);
    return CUDA_SUCCESS;
  case CU_RESOURCE_TYPE_LINEAR:
    NEED(memory_find(resource->res.linear.devPtr) != NULL && resource->res.linear.sizeInBytes > 0);
    return CUDA_SUCCESS;
  case CU_RESOURCE_TYPE_PITCH2D:
    NEED(memory_find(resource->res.pitch2D.devPtr) != NULL);
    NEED(resource->res.pitch2D.width > 0 && resource->res.pitch2D.height > 0 && resource->res.pitch2D.pitchInBytes > 0);
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult make(const struct object *model, unsigned long long *handle) {
  struct object *object = malloc(sizeof *object);
  if (object == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *object = *model;
  pthread_mutex_lock(&lock);
  object->handle = *handle = ++handles;
  object->next = objects;
  objects = object;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

static CUresult end(unsigned long long handle, bool surface) {
  struct object *found = NULL;
  pthread_mutex_lock(&lock);
  for (struct object **at = &objects; *at != NULL && found == NULL; at = &(*at)->next) {
    if ((*at)->handle != handle || (*at)->surface != surface) continue;
    found = *at;
    *at = found->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  NEED(found != NULL);
  free(found);
  return CUDA_SUCCESS;
}

static CUresult copy(unsigned long long handle, bool surface, struct object *copied) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const struct object *at = objects; at != NULL; at = at->next) {
    if (at->handle != handle || at->surface != surface) continue;
    *copied = *at;
    found = true;
  }
  pthread_mutex_unlock(&lock);
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuTexObjectCreate(CUtexObject *handle, const CUDA_RESOURCE_DESC *resource,
                                   const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view) {
  CUcontext context;
  ENTER();
  NEED(handle != NULL && texture != NULL);
  TRY(driver_current(&context));
  TRY(check_resource(resource));
  bool linear = resource->resType == CU_RESOURCE_TYPE_LINEAR || resource->resType == CU_RESOURCE_TYPE_PITCH2D;
  NEED(view == NULL || !linear);
  struct object model = {.viewed = view != NULL, .resource = *resource, .texture = *texture};
  if (view != NULL) model.view = *view;
  return make(&model, handle);
}

SIM_API CUresult cuTexObjectDestroy(CUtexObject handle) {
  ENTER();
  return end(handle, false);
}

SIM_API CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject handle) {
  struct object object;
  ENTER();
  NEED(resource != NULL);
  TRY(copy(handle, false, &object));
  *resource = object.resource;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *texture, CUtexObject handle) {
  struct object object;
  ENTER();
  NEED(texture != NULL);
  TRY(copy(handle, false, &object));
  *texture = object.texture;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject handle) {
  struct object object;
  ENTER();
  NEED(view != NULL);
  TRY(copy(handle, false, &object));
  NEED(object.viewed);
  *view = object.view;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuSurfObjectCreate(CUsurfObject *handle, const CUDA_RESOURCE_DESC *resource) {
  CUcontext context;
  ENTER();
  NEED(handle != NULL && resource != NULL && resource->resType == CU_RESOURCE_TYPE_ARRAY);
  TRY(driver_current(&context));
  TRY(check_resource(resource));
  NEED(resource->res.array.hArray->described.Flags & CUDA_ARRAY3D_SURFACE_LDST);
  struct object model = {.surface = true, .resource = *resource};
  return make(&model, handle);
}

SIM_API CUresult cuSurfObjectDestroy(CUsurfObject handle) {
  ENTER();
  return end(handle, true);
}

SIM_API CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject handle) {
  struct object object;
  ENTER();
  NEED(resource != NULL);
  TRY(copy(handle, true, &object));
  *resource = object.resource;
  return CUDA_SUCCESS;
}
