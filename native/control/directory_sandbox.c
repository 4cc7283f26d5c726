#include "directory.h"
#include "vgpu_abi.h"
#include <stdlib.h>

const char *vgpu_directory(void) {
  const char *directory = getenv("VGPU_SANDBOX_DIRECTORY");
  return directory != NULL ? directory : VGPU_CONTAINER_DIRECTORY;
}
