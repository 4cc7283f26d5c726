#include "slices.h"
#include <sys/resource.h>

/* Takes the last descriptors, so that nothing can be opened. */
static void without_descriptors(void) {
  CUfunction kernel = gpu_kernel("busy_ms_2");
  struct rlimit none = {3, 3};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  for (;;)
    OK(gpu_launch(kernel, 80, NULL));
}

/* Leaves the slice's directory, and puts files of its own in its place: nobody claims anything in them. */
static void elsewhere(void) {
  CUfunction kernel = gpu_kernel("busy_ms_2");
  char path[600], root[400];
  const char *directory = getenv("VGPU_SANDBOX_DIRECTORY");
  snprintf(root, sizeof root, "%s/root", directory);
  REQUIRE(mkdir(root, 0755) == 0 && chroot(root) == 0 && chdir("/") == 0);
  for (const char *at = directory; (at = strchr(at + 1, '/')) != NULL;) {
    snprintf(path, sizeof path, "%.*s", (int)(at - directory), directory);
    mkdir(path, 0755);
  }
  REQUIRE(mkdir(directory, 0755) == 0);
  snprintf(path, sizeof path, "%s/" VGPU_HIGH_DIRECTORY, directory);
  REQUIRE(mkdir(path, 0755) == 0);
  snprintf(path, sizeof path, "%s/" VGPU_HIGH_DIRECTORY "/00.0", directory);
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(file >= 0 && ftruncate(file, sizeof(struct vgpu_activity)) == 0);
  for (;;)
    OK(gpu_launch(kernel, 80, NULL));
}

/* The share of a low slice while the high one is claimed to have work. */
static double beside_claims(const char *name, void (*program)(void)) {
  char high_name[40];
  snprintf(high_name, sizeof high_name, "%s-high", name);
  struct slice high = slices_make(high_name, VGPU_PRIORITY_HIGH, 50);
  struct slice low = slices_make(name, VGPU_PRIORITY_LOW, 50);
  slices_link(&low, &high, 100);
  pid_t running = slices_run(&low, program);
  slices_used_beside_claims(&low, &high, 500);
  double used = slices_used_beside_claims(&low, &high, 1500);
  slices_end(running);
  return used;
}

int main(void) {
  TEST_BEGIN("attack: a low slice that cannot read, or hides from, what high slices claim gets its floor");
  TEST_NOT_WRAPPED("it measures time");
  double starved = beside_claims("starved", without_descriptors);
  printf("without descriptors %.1f\n", starved);
  CHECK_BETWEEN(starved, 0.1, 20);
  if (geteuid() == 0) {
    double away = beside_claims("away", elsewhere);
    printf("elsewhere %.1f\n", away);
    CHECK_BETWEEN(away, 0.1, 20);
  }
  return TEST_END;
}
