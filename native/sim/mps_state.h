/* What the MPS control daemon keeps: servers, their namespaces, SM partitions, and clients. Nothing of it is on disk.
 */
#ifndef SIM_MPS_STATE_H
#define SIM_MPS_STATE_H

#include "mps.h"

#include <stdio.h>

enum { MPS_NAME = 65, MPS_SERVERS = 32, MPS_SPACES = 128, MPS_PARTITIONS = 32, MPS_LINES = 256, MPS_CHUNK_SMS = 8 };

struct mps_limits {
  uint32_t percentage; /* 0: not set */
  int32_t priority;    /* -1: not set */
  char memory[24];     /* as it was given; empty: not set. Recorded only */
};

struct mps_server {
  char name[MPS_NAME]; /* empty: free */
  uint32_t number, uid, gpus;
  bool locality;
  int listener;
};

struct mps_space {
  char name[MPS_NAME]; /* empty: free */
  struct mps_server *server;
  struct mps_limits limits;
  int listener;
};

struct mps_partition {
  char name[MPS_NAME]; /* empty: free */
  struct mps_server *server;
  uint32_t gpu, chunks;
  bool remainder;
};

/* A connection to one of the sockets. `space` is NULL until its first line is read, and for commands. */
struct mps_line {
  int file; /* -1: free */
  uint32_t pid, uid;
  struct mps_space *through; /* the namespace of the socket; NULL: the daemon's own socket */
  struct mps_space *space;   /* of a client */
  size_t length;
  char text[2048];
};

struct mps_state {
  struct sim_machine *machine;
  const char *folder;
  bool multiuser, memacct, context_share, audit_log, quit;
  uint32_t numbers;
  struct mps_server servers[MPS_SERVERS];
  struct mps_space spaces[MPS_SPACES];
  struct mps_partition partitions[MPS_PARTITIONS];
  struct mps_line lines[MPS_LINES];
};

bool mps_is_name(const char *name);
struct mps_server *mps_server_of(struct mps_state *state, const char *name);
struct mps_space *mps_space_of(struct mps_state *state, const struct mps_server *server, const char *name);

/* Reads a list of ordinals and UUIDs, or beginnings of UUIDs. False: a GPU does not exist. */
bool mps_read_gpus(const struct mps_state *state, const char *list, uint32_t *gpus);

/* The reason why it could not be created; NULL: it was. A server whose GPUs do not exist is created and disappears at
 * once, without a reason, as with the real daemon. */
const char *mps_create_server(struct mps_state *state, const char *name, uint32_t uid, const char *gpus);
const char *mps_create_space(struct mps_state *state, struct mps_server *server, const char *name);

/* Ends the clients, and removes the sockets. */
void mps_delete_server(struct mps_state *state, struct mps_server *server, uint32_t error);
void mps_delete_space(struct mps_state *state, struct mps_space *space, uint32_t error);

/* Number of clients of a server, or of one of its namespaces if `space` is not NULL. */
uint32_t mps_clients(const struct mps_state *state, const struct mps_server *server, const struct mps_space *space);

/* Where a new client of a namespace is put. */
struct sim_mps_place mps_place_of(const struct mps_state *state, const struct mps_space *space);

/* Removes servers that lost a GPU. */
void mps_check_gpus(struct mps_state *state);

/* Makes the folder, and listens at its `control`; -1: that failed. */
int mps_listen(const char *folder);

/* Executes a command of NUL-terminated words; returns its exit code. Output, or the reason of a failure, goes to `out`.
 */
int mps_command(struct mps_state *state, uint32_t uid, int count, char **words, FILE *out);

/* Applies the configuration file; false: `why` names the error. */
bool mps_apply_file(struct mps_state *state, const char *path, char *why, size_t size);

/* Sets one limit by its name on the command line; NULL: it was set. */
const char *mps_set_limit(struct mps_limits *limits, const char *name, const char *value);

/* Adds an SM partition; the reason why not, or NULL. */
const char *mps_create_partition(struct mps_state *state, struct mps_server *server, const char *name, uint32_t gpu,
                                 uint32_t chunks, bool remainder);

#endif
