#include "directory.h"
#include "process.h"
#include "vgpu_abi.h"

const char *vgpu_directory(void) {
  return VGPU_CONTAINER_DIRECTORY;
}

/* Programs of the node itself find the mirrored libraries too. In a container there is no need to look elsewhere: who
 * is not to be limited has not got this library. */
bool vgpu_directory_may_be_absent(void) {
  return process_is_of_host();
}
