#include "own_activity.h"
#include "directory.h"
#include "fork.h"
#include "lock.h"
#include "os.h"

static struct lock lock;
static struct vgpu_activity *file;

struct vgpu_activity *own_activity(void) {
  char path[512];
  int error;
  lock_take(&lock);
  if (file == NULL) {
    vgpu_path(path, sizeof path, VGPU_ACTIVITY_FILE);
    file = os_map_file(path, sizeof *file, true, NULL, &error);
  }
  struct vgpu_activity *mapped = file;
  lock_release(&lock);
  return mapped;
}

static void reset(void) {
  lock.taken = 0;
}
AFTER_FORK(reset)
