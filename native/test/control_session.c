#define _GNU_SOURCE
#include "gpu.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 8) == 0);
  return fd;
}

static int readable(int fd, int timeout_ms) {
  struct pollfd poller = {.fd = fd, .events = POLLIN};
  return poll(&poller, 1, timeout_ms) == 1;
}

int main(void) {
  TEST_BEGIN("a process greets the agent once, stays connected while it lives, and needs no answer");
  char path[512];
  sandbox_make();
  sandbox_limits(gpu_uuid(), 64 * MIB, 100, 0);
  sandbox_path(path, sizeof path, VGPU_SOCKET_FILE);
  if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) TEST_SKIP("the path of the socket is too long here");
  int listener = listen_at(path);
  int gate[2];
  REQUIRE(pipe(gate) == 0);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    char byte;
    if (cuInit(0) != CUDA_SUCCESS) _exit(1);
    if (read(gate[0], &byte, 1) != 1) _exit(2);
    _exit(0);
  }
  REQUIRE(readable(listener, 10000));
  int connection = accept(listener, NULL, NULL);
  struct vgpu_greeting greeting;
  REQUIRE(recv(connection, &greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting);
  CHECK(greeting.magic == VGPU_GREETING_MAGIC);
  CHECK_EQ(greeting.version, VGPU_ABI_VERSION);
  CHECK_EQ(greeting.size, sizeof greeting);
  CHECK_EQ(greeting.pid, pid);
  struct vgpu_usage *usage = sandbox_usage();
  REQUIRE(greeting.slot < VGPU_MAX_PROCESSES);
  uint64_t owner = usage->slots[greeting.slot].owner;
  CHECK_EQ(owner & 3, VGPU_SLOT_LIVE);
  CHECK_EQ(owner >> VGPU_SLOT_PID_SHIFT & ((1u << VGPU_SLOT_PID_BITS) - 1), pid);
  CHECK_EQ(owner >> VGPU_SLOT_START_SHIFT, greeting.start_ticks);

  struct ucred peer;
  socklen_t length = sizeof peer;
  REQUIRE(getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0);
  CHECK_EQ(peer.pid, pid);
  CHECK(!readable(connection, 100));
  REQUIRE(write(gate[1], "x", 1) == 1);
  REQUIRE(readable(connection, 10000));
  char byte;
  CHECK_EQ(recv(connection, &byte, 1, 0), 0);
  int status;
  waitpid(pid, &status, 0);
  CHECK_EQ(WEXITSTATUS(status), 0);
  CHECK((usage->slots[greeting.slot].self_test & VGPU_TEST_SESSION_OPEN) != 0);

  /* Programs run without a listening agent. */
  close(listener);
  OK(cuInit(0));
  return TEST_END;
}
