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

static void make_high(struct slice *high, const char *name, const char *which) {
  char high_name[40];
  snprintf(high_name, sizeof high_name, "%s-%s", name, which);
  *high = slices_make(high_name, VGPU_PRIORITY_HIGH, 50);
}

/* The share of a low slice while a high one is claimed to have work, and beside another one whose claims it cannot
 * read. */
static void check(const char *name, void (*program)(void)) {
  struct slice high, later;
  make_high(&high, name, "high");
  make_high(&later, name, "later");
  struct slice low = slices_make(name, VGPU_PRIORITY_LOW, 50);
  slices_link(&low, &high, 100);
  pid_t running = slices_run(&low, program);
  slices_used_beside_claims(&low, &high, 500);
  double beside_claims = slices_used_beside_claims(&low, &high, 1500);
  CHECK_EQ(low.usage->slots[0].links_unread, 0);
  slices_link(&low, &later, 100);
  slices_pass(800);
  double beside_unread = slices_used(&low, 1500);
  CHECK_EQ(low.usage->slots[0].links_unread, 1);
  printf("%s: beside claims %.1f, beside what it cannot read %.1f\n", name, beside_claims, beside_unread);
  CHECK_BETWEEN(beside_claims, 0.1, 20);
  CHECK_BETWEEN(beside_unread, 0.1, 20);
  slices_end(running);
}

int main(void) {
  TEST_BEGIN("attack: a low slice that cannot read, or hides from, what high slices claim gets its floor, and says so");
  TEST_NOT_WRAPPED("it measures time");
  check("starved", without_descriptors);
  if (geteuid() == 0) check("away", elsewhere);
  return TEST_END;
}
