#include "directory.h"
#include "vgpu_abi.h"

const char *vgpu_directory(void) {
  return VGPU_CONTAINER_DIRECTORY;
}
