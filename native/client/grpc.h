/* One unary gRPC call over a unix socket, within a deadline. */
#ifndef CLIENT_GRPC_H
#define CLIENT_GRPC_H

#include <stddef.h>
#include <stdint.h>

enum grpc_outcome {
  GRPC_ANSWERED,    /* the server replied, see status */
  GRPC_UNREACHABLE, /* no server listens */
  GRPC_TIMED_OUT,
  GRPC_BROKEN, /* the reply is not gRPC */
};

struct grpc_answer {
  int status; /* 0: OK */
  char message[512];
  int error; /* errno if no server listens */
};

/* Calls `path` with one message on the socket at `address`, within `timeout_ms` in total. */
enum grpc_outcome grpc_call(const char *address, const char *path, const uint8_t *message, size_t length,
                            int timeout_ms, struct grpc_answer *answer);

#endif
