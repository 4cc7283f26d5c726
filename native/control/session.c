#define _GNU_SOURCE
#include "session.h"
#include "directory.h"
#include "fork.h"
#include "lock.h"
#include "os.h"
#include "vgpu_abi.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Programs close descriptors that they did not open, so the descriptor is used only while it refers to the same file.
 */
static int connection = -1;
static struct os_file connection_file;
static struct lock renewing;
static uint32_t check_requested; /* a publication arrived that no thread has handled yet */

static bool is_ours(void) {
  struct os_file file;
  return connection >= 0 && os_identify(connection, &file) && file.device == connection_file.device &&
         file.inode == connection_file.inode;
}

static void disconnect(void) {
  if (is_ours()) close(connection);
  connection = -1;
}

static bool greet(int fd, uint32_t pid, uint32_t slot, uint64_t start_ticks) {
  struct vgpu_greeting greeting = {
      .magic = VGPU_GREETING_MAGIC,
      .version = VGPU_ABI_VERSION,
      .size = sizeof greeting,
      .pid = pid,
      .slot = slot,
      .start_ticks = start_ticks,
  };
  return send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof greeting;
}

bool session_open(uint32_t pid, uint32_t slot, uint64_t start_ticks) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct os_file file;
  vgpu_path(address.sun_path, sizeof address.sun_path, VGPU_SOCKET_FILE);
  if (address.sun_path[0] == '\0') return false;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  if (!os_identify(fd, &file) || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
      !greet(fd, pid, slot, start_ticks)) {
    close(fd);
    return false;
  }
  connection_file = file;
  connection = fd;
  return true;
}

/* The agent never sends data, so a readable socket means that the connection has ended. */
static bool is_connected(void) {
  char byte;
  return is_ours() && recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* One thread checks. A thread that arrives meanwhile requests another check, because the agent may have restarted after
 * the first one. */
bool session_renew(uint32_t pid, uint32_t slot, uint64_t start_ticks) {
  bool renewed = false;
  __atomic_store_n(&check_requested, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&check_requested, __ATOMIC_SEQ_CST) != 0 && lock_try(&renewing)) {
    __atomic_store_n(&check_requested, 0, __ATOMIC_SEQ_CST);
    if (!is_connected()) {
      disconnect();
      renewed |= session_open(pid, slot, start_ticks);
    }
    lock_release(&renewing);
  }
  return renewed;
}

static void reset(void) {
  disconnect();
  renewing.taken = 0;
  check_requested = 0;
}
AFTER_FORK(reset)
