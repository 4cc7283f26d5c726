/* Passes descriptors and words between the processes of a test. */
#ifndef PASSING_H
#define PASSING_H

#include "tap.h"
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((unused)) static int passing_receive(int from) {
  char byte, room[CMSG_SPACE(sizeof(int))];
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  int descriptor = -1;
  REQUIRE(recvmsg(from, &message, 0) == 1);
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

__attribute__((unused)) static void passing_send(int to, int descriptor) {
  char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  REQUIRE(sendmsg(to, &message, 0) == 1);
}

/* Starts a child process that runs `play` with one end of `line`; its exit code is the result of `play`. Call this
 * before cuInit. */
__attribute__((unused)) static pid_t passing_start(int (*play)(int line), int *line) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  fflush(stdout);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    exit(play(ends[1]));
  }
  close(ends[1]);
  *line = ends[0];
  return child;
}

__attribute__((unused)) static void passing_say(int line, const void *words, size_t size) {
  REQUIRE(write(line, words, size) == (ssize_t)size);
}

__attribute__((unused)) static void passing_hear(int line, void *words, size_t size) {
  REQUIRE(recv(line, words, size, MSG_WAITALL) == (ssize_t)size);
}

__attribute__((unused)) static int passing_end(pid_t child) {
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#endif
