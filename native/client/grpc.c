#define _GNU_SOURCE
#include "grpc.h"
#include "hpack.h"
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FRAME_HEAD 9
#define LARGEST_FRAME 16384 /* what a server may send unless the client allows more */
#define STREAM 1

enum frame_type { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, CONTINUATION = 9 };
enum frame_flag { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, PRIORITY = 32 };

struct frame {
  uint32_t length;
  uint8_t type;
  uint8_t flags;
  uint32_t stream;
  uint8_t payload[LARGEST_FRAME];
};

struct call {
  int fd;
  int64_t deadline_ms;
  enum grpc_outcome failure;
  struct grpc_answer *answer;
  bool status_seen;
  bool ended;
  uint8_t block[2 * LARGEST_FRAME]; /* a header block that is split into several frames */
  size_t block_length;
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool fail(struct call *call, enum grpc_outcome failure) {
  call->failure = failure;
  return false;
}

static bool wait_for(struct call *call, short events) {
  for (;;) {
    int64_t left = call->deadline_ms - now_ms();
    if (left <= 0) return fail(call, GRPC_TIMED_OUT);
    struct pollfd poller = {.fd = call->fd, .events = events};
    int ready = poll(&poller, 1, (int)left);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return fail(call, GRPC_BROKEN);
  }
}

static bool send_all(struct call *call, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t sent = send(call->fd, bytes, length, MSG_NOSIGNAL);
    if (sent > 0) {
      bytes += sent;
      length -= (size_t)sent;
    } else if (errno == EAGAIN) {
      if (!wait_for(call, POLLOUT)) return false;
    } else if (errno != EINTR) {
      return fail(call, GRPC_BROKEN);
    }
  }
  return true;
}

static bool receive_all(struct call *call, uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t got = recv(call->fd, bytes, length, 0);
    if (got > 0) {
      bytes += got;
      length -= (size_t)got;
    } else if (got == 0) {
      return fail(call, GRPC_BROKEN);
    } else if (errno == EAGAIN) {
      if (!wait_for(call, POLLIN)) return false;
    } else if (errno != EINTR) {
      return fail(call, GRPC_BROKEN);
    }
  }
  return true;
}

static bool send_frame(struct call *call, uint8_t type, uint8_t flags, uint32_t stream, const uint8_t *payload,
                       size_t length) {
  uint8_t head[FRAME_HEAD] = {
      (uint8_t)(length >> 16), (uint8_t)(length >> 8),  (uint8_t)length,        type,           flags,
      (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
  return send_all(call, head, sizeof head) && send_all(call, payload, length);
}

static bool receive_frame(struct call *call, struct frame *frame) {
  uint8_t head[FRAME_HEAD];
  if (!receive_all(call, head, sizeof head)) return false;
  frame->length = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
  frame->type = head[3];
  frame->flags = head[4];
  frame->stream = ((uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]) & 0x7fffffff;
  if (frame->length > LARGEST_FRAME) return fail(call, GRPC_BROKEN);
  return receive_all(call, frame->payload, frame->length);
}

static bool connect_to(struct call *call, const char *address) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  if (strlen(address) >= sizeof to.sun_path) {
    call->answer->error = ENAMETOOLONG;
    return fail(call, GRPC_UNREACHABLE);
  }
  memcpy(to.sun_path, address, strlen(address));
  /* A full backlog returns EAGAIN: the agent runs but is busy. */
  while (connect(call->fd, (struct sockaddr *)&to, sizeof to) != 0) {
    if (errno != EAGAIN && errno != EINTR) {
      call->answer->error = errno;
      return fail(call, GRPC_UNREACHABLE);
    }
    if (now_ms() >= call->deadline_ms) return fail(call, GRPC_TIMED_OUT);
    poll(NULL, 0, 10);
  }
  return true;
}

static bool send_request(struct call *call, const char *path, const uint8_t *message, size_t length, int timeout_ms) {
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  static const uint8_t settings[] = {0, 1, 0, 0, 0, 0}; /* SETTINGS_HEADER_TABLE_SIZE = 0 */
  uint8_t block[1024], data[LARGEST_FRAME];
  char timeout[16];
  if (length + 5 > sizeof data) return fail(call, GRPC_BROKEN);
  snprintf(timeout, sizeof timeout, "%dm", timeout_ms);
  size_t size = 0;
  block[size++] = 0x83; /* :method POST */
  block[size++] = 0x86; /* :scheme http */
  size = hpack_write(block, size, sizeof block, 4, "", path);
  /* Not the path of the socket: servers based on nghttp2 reject that. */
  size = hpack_write(block, size, sizeof block, 1, "", "localhost");
  size = hpack_write(block, size, sizeof block, 31, "", "application/grpc");
  size = hpack_write(block, size, sizeof block, 0, "te", "trailers");
  size = hpack_write(block, size, sizeof block, 0, "grpc-timeout", timeout);
  data[0] = 0; /* not compressed */
  for (int i = 0; i < 4; i++)
    data[1 + i] = (uint8_t)(length >> (24 - 8 * i));
  memcpy(data + 5, message, length);
  return send_all(call, (const uint8_t *)preface, sizeof preface - 1) &&
         send_frame(call, SETTINGS, 0, 0, settings, sizeof settings) &&
         send_frame(call, HEADERS, END_HEADERS, STREAM, block, size) &&
         send_frame(call, DATA, END_STREAM, STREAM, data, length + 5);
}

static int hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The text of grpc-message is percent-encoded. */
static void decode_message(const char *from, char *to, size_t room) {
  size_t length = 0;
  for (; *from != '\0' && length < room - 1; from++) {
    if (from[0] == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0) {
      to[length++] = (char)(hex(from[1]) << 4 | hex(from[2]));
      from += 2;
    } else {
      to[length++] = *from;
    }
  }
  to[length] = '\0';
}

static void note_field(const char *name, const char *value, void *with) {
  struct call *call = with;
  if (strcmp(name, "grpc-status") == 0) {
    call->answer->status = atoi(value);
    call->status_seen = true;
  } else if (strcmp(name, "grpc-message") == 0) {
    decode_message(value, call->answer->message, sizeof call->answer->message);
  }
}

static bool take_headers(struct call *call, const struct frame *frame) {
  size_t skip = 0, pad = 0;
  if (frame->type == HEADERS && frame->flags & PADDED) pad = frame->payload[skip++];
  if (frame->type == HEADERS && frame->flags & PRIORITY) skip += 5;
  if (skip + pad > frame->length) return fail(call, GRPC_BROKEN);
  size_t length = frame->length - skip - pad;
  if (length > sizeof call->block - call->block_length) return fail(call, GRPC_BROKEN);
  memcpy(call->block + call->block_length, frame->payload + skip, length);
  call->block_length += length;
  if ((frame->flags & END_HEADERS) == 0) return true;
  bool sound = hpack_read(call->block, call->block_length, note_field, call);
  call->block_length = 0;
  return sound || fail(call, GRPC_BROKEN);
}

static bool take_frame(struct call *call, const struct frame *frame) {
  bool ours = frame->stream == STREAM;
  switch (frame->type) {
  case SETTINGS:
    return (frame->flags & ACK) != 0 || send_frame(call, SETTINGS, ACK, 0, NULL, 0);
  case PING:
    return (frame->flags & ACK) != 0 || send_frame(call, PING, ACK, 0, frame->payload, frame->length);
  case HEADERS:
    if (ours && frame->flags & END_STREAM) call->ended = true;
    return !ours || take_headers(call, frame);
  case CONTINUATION:
    return !ours || take_headers(call, frame);
  case DATA:
    if (ours && frame->flags & END_STREAM) call->ended = true;
    return true;
  case RST_STREAM:
    return !ours || fail(call, GRPC_BROKEN);
  case GOAWAY:
    return fail(call, GRPC_BROKEN);
  default:
    return true;
  }
}

static bool run(struct call *call, const char *address, const char *path, const uint8_t *message, size_t length,
                int timeout_ms) {
  static struct frame frame;
  if (!connect_to(call, address) || !send_request(call, path, message, length, timeout_ms)) return false;
  while (!(call->ended && call->block_length == 0))
    if (!receive_frame(call, &frame) || !take_frame(call, &frame)) return false;
  return call->status_seen || fail(call, GRPC_BROKEN);
}

enum grpc_outcome grpc_call(const char *address, const char *path, const uint8_t *message, size_t length,
                            int timeout_ms, struct grpc_answer *answer) {
  static struct call call;
  memset(&call, 0, sizeof call);
  memset(answer, 0, sizeof *answer);
  call.answer = answer;
  call.deadline_ms = now_ms() + timeout_ms;
  call.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (call.fd < 0) {
    answer->error = errno;
    return GRPC_UNREACHABLE;
  }
  bool answered = run(&call, address, path, message, length, timeout_ms);
  close(call.fd);
  return answered ? GRPC_ANSWERED : call.failure;
}
