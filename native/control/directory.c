#include "directory.h"
#include <string.h>

void vgpu_path(char *path, size_t room, const char *file) {
  const char *directory = vgpu_directory();
  size_t head = strlen(directory);
  size_t tail = strlen(file);
  path[0] = '\0';
  if (head + 1 + tail + 1 > room) return;
  memcpy(path, directory, head);
  path[head] = '/';
  memcpy(path + head + 1, file, tail + 1);
}
