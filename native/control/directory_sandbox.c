#include "directory.h"
#include "process.h"
#include "vgpu_abi.h"
#include <stdlib.h>
#include <string.h>

const char *vgpu_directory(void) {
  const char *directory = getenv("VGPU_SANDBOX_DIRECTORY");
  return directory != NULL ? directory : VGPU_CONTAINER_DIRECTORY;
}

/* As on a node, unless a test declares that it runs in a container. */
bool vgpu_directory_may_be_absent(void) {
  const char *space = getenv("VGPU_SANDBOX_PID_NAMESPACE");
  return space == NULL || strcmp(space, "container") != 0;
}
