#define _GNU_SOURCE
#include "directory.h"
#include "fork.h"
#include "sandbox.h"
#include "session.h"
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static int agent_start(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  vgpu_path(address.sun_path, sizeof address.sun_path, VGPU_SOCKET_FILE);
  unlink(address.sun_path);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 8) == 0);
  return listener;
}

/* The slot in the greeting of the process; -1 if there was none. */
static int greeted(int listener, int *fd) {
  struct vgpu_greeting greeting;
  *fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (*fd < 0) return -1;
  REQUIRE(read(*fd, &greeting, sizeof greeting) == (ssize_t)sizeof greeting);
  return greeting.magic == VGPU_GREETING_MAGIC && greeting.pid == 7 && greeting.start_ticks == 99 ? (int)greeting.slot
                                                                                                  : -2;
}

/* Publications that many threads notice at once. */
static void *notice(void *unused) {
  for (int i = 0; i < 200; i++)
    session_renew(7, 5, 99);
  return unused;
}

int main(void) {
  TEST_BEGIN("a process greets every restarted agent and touches no other descriptor");
  int fd, other;
  sandbox_make();
  CHECK(!session_open(7, 1, 99));
  int listener = agent_start();
  CHECK(session_renew(7, 1, 99));
  CHECK_EQ(greeted(listener, &fd), 1);
  CHECK(!session_renew(7, 1, 99));
  CHECK_EQ(greeted(listener, &other), -1);

  /* The agent restarts. */
  close(fd);
  close(listener);
  listener = agent_start();
  CHECK(session_renew(7, 2, 99));
  CHECK_EQ(greeted(listener, &fd), 2);

  /* The program closes all descriptors and opens others, which the library must not touch. */
  int pair[2];
  char path[512];
  sandbox_path(path, sizeof path, VGPU_LIMITS_FILE);
  for (int i = 3; i < 64; i++)
    if (i != fd && i != listener) close(i);
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  for (int i = 0; i < 16; i++)
    REQUIRE(open(path, O_RDWR | O_CREAT, 0600) >= 0);
  CHECK(session_renew(7, 3, 99));
  CHECK_EQ(read(fd, path, 1), 0);
  CHECK_EQ(greeted(listener, &other), 3);
  CHECK_EQ(recv(pair[0], path, 1, MSG_DONTWAIT), -1);
  CHECK_EQ(send(pair[0], "x", 1, MSG_NOSIGNAL), 1);

  /* A child closes the parent's connection and no other descriptor. */
  pid_t child = fork();
  if (child == 0) {
    fork_reset();
    _exit(send(pair[1], "x", 1, MSG_NOSIGNAL) == 1 && session_open(7, 4, 99) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  CHECK_EQ(recv(other, path, 1, MSG_DONTWAIT), -1);
  CHECK_EQ(greeted(listener, &fd), 4);

  /* When many threads notice a new agent, exactly one of them greets it, once. */
  close(other);
  pthread_t threads[8];
  for (int i = 0; i < 8; i++)
    REQUIRE(pthread_create(&threads[i], NULL, notice, NULL) == 0);
  for (int i = 0; i < 8; i++)
    REQUIRE(pthread_join(threads[i], NULL) == 0);
  CHECK_EQ(greeted(listener, &fd), 5);
  CHECK_EQ(greeted(listener, &other), -1);
  return TEST_END;
}
