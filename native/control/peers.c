#include "peers.h"
#include "control.h"
#include "directory.h"
#include "fork.h"
#include "limits.h"
#include "lock.h"
#include "os.h"
#include "vgpu_abi.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(VGPU_MAX_DEVICES <= 100 && VGPU_MAX_HIGH <= 100, "names of links have two digits, and one or two");

static struct peer {
  bool open;
  bool unread; /* it could not be opened at the last try, and was not open */
  int fd;
  struct os_file file;
  void *mapped; /* NULL: not mapped */
} peers[VGPU_MAX_DEVICES][VGPU_MAX_HIGH];

static struct lock lock;

/* The program may have closed all descriptors, and opened another file under this number. */
static bool is_there(const struct peer *peer) {
  struct os_file file;
  return peer->open && os_identify(peer->fd, &file) && file.device == peer->file.device &&
         file.inode == peer->file.inode;
}

/* Tells the agent how many links cannot be read. */
static void note(struct peer *peer, bool is_unread) {
  static uint32_t unread;
  uint32_t slot = __atomic_load_n(&control.ledger.slot, __ATOMIC_RELAXED);
  if (is_unread == peer->unread) return;
  peer->unread = is_unread;
  unread += is_unread ? 1 : -1u;
  if (slot < VGPU_MAX_PROCESSES)
    __atomic_store_n(&control.ledger.usage->slots[slot].links_unread, unread, __ATOMIC_RELAXED);
}

static void forget(struct peer *peer) {
  note(peer, false);
  if (is_there(peer)) close(peer->fd);
  if (peer->mapped != NULL) munmap(peer->mapped, sizeof(struct vgpu_activity));
  memset(peer, 0, sizeof *peer);
}

/* O_NONBLOCK: the other container may hold a lease on the file, and open would wait for it. */
static int try_link(struct peer *peer, uint32_t device, uint32_t number) {
  char name[] = VGPU_HIGH_DIRECTORY "/00.00";
  char path[512];
  struct os_file file;
  char *digits = name + sizeof VGPU_HIGH_DIRECTORY;
  digits[0] = (char)('0' + device / 10);
  digits[1] = (char)('0' + device % 10);
  if (number >= 10) digits[3] = (char)('0' + number / 10);
  digits[number < 10 ? 3 : 4] = (char)('0' + number % 10);
  digits[number < 10 ? 4 : 5] = 0;
  vgpu_path(path, sizeof path, name);
  /* What a process sees that has left its directory says nothing. */
  if (!limits_are_in_reach()) return EACCES;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno;
  if (!os_identify(fd, &file) ||
      (is_there(peer) && file.device == peer->file.device && file.inode == peer->file.inode)) {
    close(fd);
    return 0;
  }
  forget(peer);
  *peer = (struct peer){.open = true, .fd = fd, .file = file};
  return 0;
}

static int open_link(struct peer *peer, uint32_t device, uint32_t number) {
  int error = try_link(peer, device, number);
  /* A link that leads nowhere is none. */
  note(peer, error != 0 && error != ENOENT && !is_there(peer));
  return error;
}

void peers_refresh(void) {
  lock_take(&lock);
  for (uint32_t device = 0; device < control.limits->header.device_count; device++) {
    struct vgpu_device_live live;
    limits_read(control.limits, device, &live);
    for (uint32_t i = 0; i < VGPU_MAX_HIGH; i++) {
      if (i < live.high_count)
        open_link(&peers[device][i], device, i);
      else
        forget(&peers[device][i]);
    }
  }
  lock_release(&lock);
}

long peers_read(uint32_t device, uint32_t number, void *part, size_t size, size_t offset) {
  struct peer *peer = &peers[device][number];
  lock_take(&lock);
  int error = is_there(peer) ? 0 : open_link(peer, device, number);
  long got = error != 0 ? -error : pread(peer->fd, part, size, (off_t)offset);
  lock_release(&lock);
  return got;
}

const uint32_t *peers_word(uint32_t device, uint32_t number, size_t offset) {
  struct peer *peer = &peers[device][number];
  lock_take(&lock);
  if (peer->mapped == NULL && is_there(peer)) {
    void *mapped = mmap(NULL, sizeof(struct vgpu_activity), PROT_READ, MAP_SHARED, peer->fd, 0);
    if (mapped != MAP_FAILED) peer->mapped = mapped;
  }
  const char *at = peer->mapped;
  lock_release(&lock);
  return at == NULL ? NULL : (const uint32_t *)(const void *)(at + offset);
}

/* The child has a slot of its own, and tries the links itself. */
static void reset(void) {
  lock.taken = 0;
  for (uint32_t device = 0; device < VGPU_MAX_DEVICES; device++)
    for (uint32_t i = 0; i < VGPU_MAX_HIGH; i++)
      note(&peers[device][i], false);
}
AFTER_FORK(reset)
