/*
 * Attacks of a container on the agent, until the program is killed or its standard input closes:
 *
 *     hostile flood DIRECTORY      connects to vcuda.sock as fast as it can, sends nothing or noise, closes
 *     hostile hoard DIRECTORY      opens connections, greets on every other one, and keeps all of them
 *     hostile scribble DIRECTORY   fills vgpu.usage with noise, lengthens and shortens it
 */
#include "vgpu_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void rest(int ms) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  if (poll(&input, 1, ms) > 0) exit(0);
}

static int reach(const char *directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", directory, VGPU_SOCKET_FILE);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static void noise(unsigned char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++)
    bytes[i] = (unsigned char)rand();
}

static void flood(const char *directory) {
  unsigned char bytes[256];
  for (unsigned count = 0;; count++) {
    int fd = reach(directory);
    noise(bytes, sizeof bytes);
    if (fd >= 0 && count % 2 == 0 && send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) < 0) count++;
    if (fd >= 0) close(fd);
    /* Where no server listens any more the program tries a thousand times a second. */
    rest(fd < 0 ? 1 : 0);
  }
}

static void hoard(const char *directory) {
  for (unsigned count = 0;; count++) {
    struct vgpu_greeting greeting = {.magic = VGPU_GREETING_MAGIC, .version = VGPU_ABI_VERSION, .size = sizeof greeting, .pid = 1, .slot = count % VGPU_MAX_PROCESSES};
    int fd = reach(directory);
    if (fd >= 0 && count % 2 == 0 && send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL) < 0) count++;
    rest(fd < 0 ? 10 : 2);
  }
}

static void scribble(const char *directory) {
  char path[4096];
  unsigned char bytes[4096];
  snprintf(path, sizeof path, "%s/%s", directory, VGPU_USAGE_FILE);
  int fd = open(path, O_RDWR);
  if (fd < 0) exit(1);
  for (unsigned count = 0;; count++) {
    noise(bytes, sizeof bytes);
    off_t at = count % 16 == 0 ? 0 : (off_t)(rand() % (int)sizeof(struct vgpu_usage));
    if (pwrite(fd, bytes, sizeof bytes, at) < 0 || ftruncate(fd, count % 64 == 0 ? 100 : count % 64 == 32 ? 1 << 24 : (off_t)sizeof(struct vgpu_usage)) != 0) exit(1);
    rest(1);
  }
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  srand((unsigned)time(NULL));
  if (strcmp(arguments[1], "flood") == 0) flood(arguments[2]);
  if (strcmp(arguments[1], "hoard") == 0) hoard(arguments[2]);
  if (strcmp(arguments[1], "scribble") == 0) scribble(arguments[2]);
  return 2;
}
