#define _GNU_SOURCE
#include "mps_state.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char DEFAULT[] = "default";

bool mps_is_name(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return length > 0 && length < MPS_NAME && length == strlen(name);
}

struct mps_server *mps_server_of(struct mps_state *state, const char *name) {
  for (int i = 0; i < MPS_SERVERS; i++)
    if (name[0] != 0 && strcmp(state->servers[i].name, name) == 0) return &state->servers[i];
  return NULL;
}

struct mps_space *mps_space_of(struct mps_state *state, const struct mps_server *server, const char *name) {
  for (int i = 0; i < MPS_SPACES; i++)
    if (name[0] != 0 && state->spaces[i].server == server && strcmp(state->spaces[i].name, name) == 0)
      return &state->spaces[i];
  return NULL;
}

static int gpu_named(const struct mps_state *state, const char *name, size_t length) {
  char *end;
  unsigned long index = strtoul(name, &end, 10);
  const struct sim_node *node = &state->machine->node;
  if (length > 0 && end == name + length) return index < node->count ? (int)index : -1;
  for (uint32_t i = 0; i < node->count; i++)
    if (length > 4 && strncasecmp(node->gpus[i].uuid, name, length) == 0) return (int)i;
  return -1;
}

bool mps_read_gpus(const struct mps_state *state, const char *list, uint32_t *gpus) {
  *gpus = 0;
  for (const char *at = list;; at++) {
    size_t length = strcspn(at, ",");
    int gpu = gpu_named(state, at, length);
    if (gpu < 0) return false;
    *gpus |= 1u << gpu;
    at += length;
    if (*at == 0) return true;
  }
}

/* The path of a socket is short: the folder is named by its descriptor. A socket that is left over is replaced. */
int mps_listen(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  mkdir(folder, 0755);
  int within = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control", within);
  unlink(address.sun_path);
  bool good = within >= 0 && made >= 0 && bind(made, (struct sockaddr *)&address, sizeof address) == 0 &&
              chmod(address.sun_path, 0666) == 0 && listen(made, MPS_LINES) == 0;
  if (within >= 0) close(within);
  if (good) return made;
  if (made >= 0) close(made);
  return -1;
}

static void folder_of(const struct mps_state *state, const struct mps_server *server, const struct mps_space *space,
                      char *path, size_t size) {
  snprintf(path, size, "%s/%s%s%s", state->folder, server->name, space == NULL ? "" : "/",
           space == NULL ? "" : space->name);
}

static void remove_socket(const char *folder, int listener) {
  char path[PATH_MAX + 16];
  if (listener >= 0) close(listener);
  snprintf(path, sizeof path, "%s/control", folder);
  unlink(path);
  rmdir(folder);
}

const char *mps_create_space(struct mps_state *state, struct mps_server *server, const char *name) {
  char path[PATH_MAX];
  if (!mps_is_name(name)) return "a name has lowercase letters, digits and underscores only, at most 64";
  if (mps_space_of(state, server, name) != NULL) return "the namespace exists already";
  for (int i = 0; i < MPS_SPACES; i++) {
    struct mps_space *space = &state->spaces[i];
    if (space->name[0] != 0) continue;
    memset(space, 0, sizeof *space);
    snprintf(space->name, sizeof space->name, "%s", name);
    space->server = server;
    space->limits.priority = -1;
    folder_of(state, server, space, path, sizeof path);
    space->listener = mps_listen(path);
    if (space->listener >= 0) return NULL;
    space->name[0] = 0;
    return "its socket could not be made";
  }
  return "there are too many namespaces";
}

const char *mps_create_server(struct mps_state *state, const char *name, uint32_t uid, const char *gpus) {
  char path[PATH_MAX];
  uint32_t mask = (uint32_t)((1ull << state->machine->node.count) - 1);
  if (!mps_is_name(name)) return "a name has lowercase letters, digits and underscores only, at most 64";
  if (mps_server_of(state, name) != NULL) return "the server exists already";
  if (gpus != NULL && !mps_read_gpus(state, gpus, &mask)) return NULL;
  for (int i = 0; i < MPS_SERVERS; i++) {
    struct mps_server *server = &state->servers[i];
    if (server->name[0] != 0) continue;
    *server = (struct mps_server){.number = ++state->numbers, .uid = uid, .gpus = mask};
    snprintf(server->name, sizeof server->name, "%s", name);
    folder_of(state, server, NULL, path, sizeof path);
    server->listener = mps_listen(path);
    const char *why = server->listener < 0 ? "its socket could not be made" : mps_create_space(state, server, DEFAULT);
    if (why != NULL) server->name[0] = 0;
    return why;
  }
  return "there are too many servers";
}

uint32_t mps_clients(const struct mps_state *state, const struct mps_server *server, const struct mps_space *space) {
  uint32_t count = 0;
  for (int i = 0; i < MPS_LINES; i++) {
    const struct mps_line *line = &state->lines[i];
    if (line->file < 0 || line->space == NULL || line->space->server != server) continue;
    count += space == NULL || line->space == space;
  }
  return count;
}

static void end_clients(struct mps_state *state, const struct mps_space *space, uint32_t error) {
  for (int i = 0; i < MPS_LINES; i++) {
    struct mps_line *line = &state->lines[i];
    if (line->file < 0) continue;
    if (line->through == space) line->through = NULL;
    if (line->space != space) continue;
    int process = sim_mps_process(state->machine, line->pid);
    if (process >= 0) sim_mps_end_client(state->machine, (uint32_t)process, error);
    close(line->file);
    line->file = -1;
  }
}

void mps_delete_space(struct mps_state *state, struct mps_space *space, uint32_t error) {
  char path[PATH_MAX];
  end_clients(state, space, error);
  folder_of(state, space->server, space, path, sizeof path);
  remove_socket(path, space->listener);
  space->name[0] = 0;
}

void mps_delete_server(struct mps_state *state, struct mps_server *server, uint32_t error) {
  char path[PATH_MAX];
  for (int i = 0; i < MPS_SPACES; i++)
    if (state->spaces[i].name[0] != 0 && state->spaces[i].server == server)
      mps_delete_space(state, &state->spaces[i], error);
  for (int i = 0; i < MPS_PARTITIONS; i++)
    if (state->partitions[i].server == server) state->partitions[i].name[0] = 0;
  folder_of(state, server, NULL, path, sizeof path);
  remove_socket(path, server->listener);
  server->name[0] = 0;
}

struct sim_mps_place mps_place_of(const struct mps_state *state, const struct mps_space *space) {
  const struct mps_limits *limits = &space->limits;
  return (struct sim_mps_place){.server = space->server->number,
                                .together = state->context_share,
                                .percentage = limits->percentage == 0 ? 100 : limits->percentage,
                                .priority = limits->priority < 0 ? 0 : (uint32_t)limits->priority,
                                .gpus = space->server->gpus};
}

void mps_check_gpus(struct mps_state *state) {
  for (int i = 0; i < MPS_SERVERS; i++) {
    struct mps_server *server = &state->servers[i];
    bool lost = false;
    for (uint32_t gpu = 0; gpu < state->machine->node.count; gpu++)
      lost = lost || ((server->gpus >> gpu & 1) && atomic_load(&state->machine->boards[gpu].lost));
    if (server->name[0] != 0 && lost) mps_delete_server(state, server, SIM_MPS_RPC_FAILURE);
  }
}

const char *mps_create_partition(struct mps_state *state, struct mps_server *server, const char *name, uint32_t gpu,
                                 uint32_t chunks, bool remainder) {
  uint32_t taken = 0, all = state->machine->node.gpus[gpu].sms / MPS_CHUNK_SMS;
  struct mps_partition *made = NULL;
  if (!mps_is_name(name)) return "a name has lowercase letters, digits and underscores only, at most 64";
  if (server->locality) return "the server has locality domains";
  if (mps_clients(state, server, NULL) > 0) return "the device has clients";
  for (int i = 0; i < MPS_PARTITIONS; i++) {
    struct mps_partition *one = &state->partitions[i];
    if (one->name[0] == 0)
      made = one;
    else if (one->gpu == gpu)
      taken += one->chunks;
    if (one->name[0] != 0 && one->server == server && one->gpu == gpu && strcmp(one->name, name) == 0)
      return "the partition exists already";
  }
  if (chunks == 0 || chunks + taken > all) return "the device has too few free chunks";
  if (made == NULL) return "there are too many partitions";
  *made = (struct mps_partition){.server = server, .gpu = gpu, .chunks = chunks, .remainder = remainder};
  snprintf(made->name, sizeof made->name, "%s", name);
  return NULL;
}
