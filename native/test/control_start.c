#include "gpu.h"
#include <sys/wait.h>

/* Calls cuInit in a child process and captures its stderr. */
static int init_in_child(char *said, size_t room) {
  int ends[2], status;
  REQUIRE(pipe(ends) == 0);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    CUresult one = cuInit(0), two = cuInit(0);
    CUcontext context;
    CUdeviceptr pointer;
    if (one == CUDA_SUCCESS &&
        (cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS || cuMemAlloc_v2(&pointer, 4096) != CUDA_SUCCESS))
      _exit(98);
    _exit(one == two ? (int)one : 99);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; (got = read(ends[0], said + length, room - 1 - length)) > 0;)
    length += (size_t)got;
  said[length] = '\0';
  close(ends[0]);
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int lines(const char *text) {
  int count = 0;
  for (; *text != '\0'; text++)
    count += *text == '\n';
  return count;
}

static void refused_because(const char *reason) {
  char said[1024];
  CHECK_EQ(init_in_child(said, sizeof said), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_EQ(lines(said), 1);
  if (strstr(said, reason) == NULL) tap_fail(__FILE__, __LINE__, "said \"%s\", not \"%s\"", said, reason);
}

int main(void) {
  TEST_BEGIN(
      "no directory passes everything through, a directory without sound limits stops the program, with the reason");
  char said[1024], path[512];
  setenv("VGPU_SANDBOX_DIRECTORY", "/nonexistent/vcuda", 1);
  CHECK_EQ(init_in_child(said, sizeof said), CUDA_SUCCESS);
  CHECK_TEXT(said, "");

  sandbox_make();
  refused_because("it is missing");
  struct vgpu_limits *limits = sandbox_limits(gpu_uuid(), 1024 * MIB, 100, 0);
  CHECK_EQ(init_in_child(said, sizeof said), CUDA_SUCCESS);
  CHECK_TEXT(said, "");

  limits->header.magic++;
  refused_because("it is not a limits file");
  limits->header.magic--;
  limits->header.version = VGPU_ABI_VERSION + 1;
  refused_because("its version is not supported");
  limits->header.version = VGPU_ABI_VERSION;
  limits->header.device_count = VGPU_MAX_DEVICES + 1;
  refused_because("it lists too many GPUs");
  limits->header.device_count = 1;
  limits->header.size = 100;
  refused_because("it is too short");
  limits->header.size = sizeof *limits;
  CHECK_EQ(init_in_child(said, sizeof said), CUDA_SUCCESS);

  struct vgpu_usage *usage = sandbox_usage();
  usage->header.magic = 1;
  refused_because("the usage file has the wrong magic number");
  usage->header.magic = VGPU_USAGE_MAGIC;
  usage->header.version = 99;
  refused_because("the version of the usage file is not supported");
  usage->header.version = VGPU_ABI_VERSION;

  sandbox_path(path, sizeof path, VGPU_USAGE_FILE);
  REQUIRE(unlink(path) == 0 && mkdir(path, 0755) == 0);
  refused_because("the usage file cannot be written");
  REQUIRE(rmdir(path) == 0);
  CHECK_EQ(init_in_child(said, sizeof said), CUDA_SUCCESS);

  sandbox_path(path, sizeof path, VGPU_LIMITS_FILE);
  REQUIRE(truncate(path, 100) == 0);
  refused_because("it is too short");
  return TEST_END;
}
