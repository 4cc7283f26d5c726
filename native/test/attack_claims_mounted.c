#define _GNU_SOURCE
#include "slices.h"
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

/* The slice's directory as mounted in a container: read-only except for its own files. */
static bool mount_as_container(const char *directory) {
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
  return mount(directory, directory, NULL, MS_BIND, NULL) == 0 &&
         mount(NULL, directory, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0;
}

static void refuses_writers(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  CHECK(fd < 0 && errno == EROFS);
}

int main(void) {
  TEST_BEGIN("attack: root in a low slice can read the claims of high slices, but not write, replace or truncate them");
  struct slice high = slices_make("high", VGPU_PRIORITY_HIGH, 50);
  struct slice low = slices_make("low", VGPU_PRIORITY_LOW, 50);
  char claims[512], other[512], open_file[64];
  slices_link(&low, &high, 100);
  high.activity->claimed_until_ns[3] = 42;
  if (!mount_as_container(low.directory)) TEST_SKIP("mounts cannot be made here (root is needed)");
  snprintf(claims, sizeof claims, "%s/" VGPU_HIGH_DIRECTORY "/00.0", low.directory);
  snprintf(other, sizeof other, "%s/" VGPU_HIGH_DIRECTORY "/00.1", low.directory);

  int fd = open(claims, O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  struct vgpu_activity seen;
  CHECK_EQ(read(fd, &seen, sizeof seen), sizeof seen);
  CHECK_EQ(seen.claimed_until_ns[3], 42);

  refuses_writers(claims);
  /* An open descriptor refers to the mount through which it was opened. */
  snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
  refuses_writers(open_file);
  void *mapped = mmap(NULL, sizeof seen, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(mapped != MAP_FAILED);
  CHECK(mprotect(mapped, sizeof seen, PROT_READ | PROT_WRITE) != 0);
  CHECK(mmap(NULL, sizeof seen, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK(ftruncate(fd, 0) != 0 && truncate(claims, 0) != 0);
  CHECK(unlink(claims) != 0 && rename(claims, other) != 0 && link(claims, other) != 0 && chmod(claims, 0666) != 0);
  CHECK_EQ(high.activity->claimed_until_ns[3], 42);
  return TEST_END;
}
