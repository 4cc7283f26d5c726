#include "directory.h"
#include "process.h"
#include "vgpu_abi.h"

const char *vgpu_directory(void) {
  return VGPU_CONTAINER_DIRECTORY;
}

/* Programs on the node itself also load the mirrored libraries, and have no directory. In a container a missing
 * directory is an error, because containers without a slice do not get this library. */
bool vgpu_directory_may_be_absent(void) {
  return process_is_of_host();
}
