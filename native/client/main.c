/* gpu-client: registers the processes of a container with the node agent. Drop-in replacement for the program of the
 * same name in tkestack gpu-manager. Static, so that it runs in any image. */
#include "grpc.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 5000
#define SCHEME "unix://"

/* Exit codes by reason of the failure. */
enum { DONE = 0, BAD_USAGE = 2, UNREACHABLE = 3, TIMED_OUT = 4, REFUSED = 5, BROKEN = 6 };

static const char *const usage =
    "usage: gpu-client --addr SOCKET --pod-uid UID (--cont-id ID | --cont-name NAME) [--bus-id ID]\n"
    "Registers this container's processes with the node agent listening on SOCKET.\n"
    "exit codes: 0 registered, 2 bad usage, 3 nobody listens, 4 no answer within 5 s, 5 refused, 6 not understood\n";

struct request {
  const char *address;
  const char *bus_id;
  const char *pod_uid;
  const char *container_name;
  const char *container_id;
};

/* Appends a string field of a protobuf message; empty fields are omitted. Returns the new length, or 0 if the message
 * is full. */
static size_t put_field(uint8_t *message, size_t length, size_t room, unsigned int number, const char *text) {
  size_t size = text == NULL ? 0 : strlen(text);
  if (size == 0) return length;
  if (size > 4095 || length + size + 3 > room) return 0;
  message[length++] = (uint8_t)(number << 3 | 2);
  if (size >= 128) message[length++] = (uint8_t)(size | 128);
  message[length++] = (uint8_t)(size < 128 ? size : size >> 7);
  memcpy(message + length, text, size);
  return length + size;
}

static size_t encode(const struct request *request, uint8_t *message, size_t room) {
  const char *const fields[] = {request->bus_id, request->pod_uid, request->container_name, request->container_id};
  size_t length = 0;
  for (unsigned int i = 0; i < 4; i++) {
    size_t before = length;
    length = put_field(message, length, room, i + 1, fields[i]);
    if (length < before) return 0;
  }
  return length;
}

static int parse(int argc, char **argv, struct request *request) {
  enum { ADDRESS = 1, BUS_ID, POD_UID, CONTAINER_NAME, CONTAINER_ID, HELP };
  static const struct option options[] = {
      {"addr", required_argument, NULL, ADDRESS},
      {"bus-id", required_argument, NULL, BUS_ID},
      {"pod-uid", required_argument, NULL, POD_UID},
      {"cont-name", required_argument, NULL, CONTAINER_NAME},
      {"cont-id", required_argument, NULL, CONTAINER_ID},
      {"help", no_argument, NULL, HELP},
      {0},
  };
  int option;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
    case ADDRESS:
      request->address = optarg;
      break;
    case BUS_ID:
      request->bus_id = optarg;
      break;
    case POD_UID:
      request->pod_uid = optarg;
      break;
    case CONTAINER_NAME:
      request->container_name = optarg;
      break;
    case CONTAINER_ID:
      request->container_id = optarg;
      break;
    default:
      return -1;
    }
  }
  int contained = request->container_name != NULL || request->container_id != NULL;
  return optind == argc && request->address != NULL && request->pod_uid != NULL && contained ? 0 : -1;
}

int main(int argc, char **argv) {
  struct request request = {0};
  struct grpc_answer answer;
  uint8_t message[8192];
  if (parse(argc, argv, &request) != 0) {
    fputs(usage, stderr);
    return BAD_USAGE;
  }
  size_t length = encode(&request, message, sizeof message);
  if (length == 0) {
    fputs("gpu-client: nothing to say, or too much of it\n", stderr);
    return BAD_USAGE;
  }
  const char *address = request.address;
  if (strncmp(address, SCHEME, strlen(SCHEME)) == 0) address += strlen(SCHEME);
  switch (grpc_call(address, "/vcuda.VCUDAService/RegisterVDevice", message, length, TIMEOUT_MS, &answer)) {
  case GRPC_ANSWERED:
    if (answer.status == 0) return DONE;
    fprintf(stderr, "gpu-client: the agent refused (gRPC status %d): %s\n", answer.status, answer.message);
    return REFUSED;
  case GRPC_UNREACHABLE:
    fprintf(stderr, "gpu-client: cannot connect to the agent at %s: %s\n", address, strerror(answer.error));
    return UNREACHABLE;
  case GRPC_TIMED_OUT:
    fprintf(stderr, "gpu-client: no answer from %s within %d s\n", address, TIMEOUT_MS / 1000);
    return TIMED_OUT;
  default:
    fprintf(stderr, "gpu-client: the server at %s does not speak gRPC\n", address);
    return BROKEN;
  }
}
