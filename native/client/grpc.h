/* One unary gRPC call over a unix socket, within a deadline. */
#ifndef CLIENT_GRPC_H
#define CLIENT_GRPC_H

#include <stddef.h>
#include <stdint.h>

enum grpc_outcome {
  GRPC_ANSWERED,    /* the server decided: see status */
  GRPC_UNREACHABLE, /* nobody listens */
  GRPC_TIMED_OUT,
  GRPC_BROKEN, /* what came back is no gRPC */
};

struct grpc_answer {
  int status; /* 0: OK */
  char message[512];
  int error; /* errno where nobody listens */
};

/* Calls `path` with one message on the socket at `address`, at most `timeout_ms` for all of it. */
enum grpc_outcome grpc_call(const char *address, const char *path, const uint8_t *message, size_t length,
                            int timeout_ms, struct grpc_answer *answer);

#endif
