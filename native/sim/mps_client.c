#define _GNU_SOURCE
#include "mps_client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Stays open: the daemon sees by its end that the client has ended. */
static int line = -1;
static struct sim_mps_place place;

/* Where clients look without the variable: the daemon's default. */
static const char *folder(void) {
  const char *named = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (named != NULL && named[0] != 0) return named;
  return geteuid() == 0 ? "/run/nvidia-mps" : "/tmp/nvidia-mps";
}

/* The path of a socket is short: the folder is named by its descriptor. */
static int connect_in(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int within = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), made = -1;
  if (within >= 0) made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control", within);
  if (made >= 0 && connect(made, (struct sockaddr *)&address, sizeof address) != 0) {
    close(made);
    made = -1;
  }
  if (within >= 0) close(within);
  return made;
}

static bool ask(int file, char *answer, size_t size) {
  static const char question[] = "client\n";
  size_t length = 0;
  if (send(file, question, sizeof question - 1, MSG_NOSIGNAL) != sizeof question - 1) return false;
  while (length + 1 < size) {
    ssize_t got = read(file, answer + length, size - 1 - length);
    if (got <= 0) return false;
    length += (size_t)got;
    if (answer[length - 1] == '\n') break;
  }
  answer[length] = 0;
  return true;
}

static uint32_t keep_devices(uint32_t *gpus, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++)
    if (gpus[i] < SIM_MAX_GPUS && (place.gpus >> gpus[i] & 1)) gpus[kept++] = gpus[i];
  return kept;
}

CUresult mps_client_connect(uint32_t *gpus, uint32_t *count) {
  char answer[128];
  int file = connect_in(folder());
  if (file < 0) return CUDA_SUCCESS;
  if (!ask(file, answer, sizeof answer)) {
    close(file);
    return CUDA_SUCCESS;
  }
  if (strcmp(answer, "denied\n") == 0) {
    close(file);
    return CUDA_ERROR_NOT_PERMITTED;
  }
  if (sscanf(answer, "place %u %u %u %u %u", &place.server, &place.together, &place.percentage, &place.priority,
             &place.gpus) != 5) {
    close(file);
    return CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  /* The program may set its own priority, and cannot be held to less than that. */
  const char *own = getenv("CUDA_MPS_CLIENT_PRIORITY");
  if (own != NULL && (strcmp(own, "0") == 0 || strcmp(own, "1") == 0)) place.priority = (uint32_t)(own[0] - '0');
  line = file;
  *count = keep_devices(gpus, *count);
  return CUDA_SUCCESS;
}

void mps_client_forget(void) {
  if (line >= 0) close(line);
  line = -1;
}

void mps_client_leave(struct sim_machine *machine, uint32_t process) {
  if (line >= 0) sim_mps_end_client(machine, process, SIM_MPS_CLIENT_TERMINATED);
}

uint32_t mps_client_sms(const struct sim_board *board) {
  return line < 0 ? board->model.sms : sim_mps_sms(board->model.sms, place.percentage);
}

void mps_client_join(CUcontext context) {
  if (line < 0) return;
  const struct sim_client client = {.server = place.server,
                                    .together = place.together,
                                    .most_sms = mps_client_sms(context->board),
                                    .priority = place.priority};
  sim_model_join(&context->board->model, context->tenant, &client);
}
