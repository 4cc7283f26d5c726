/*
 * nvidia-cuda-mps-control of the simulated driver, version 3 of its protocol: the control daemon, and the program that
 * sends it commands. Started with -f, it ends with "quit" on its standard input, or with the end of that.
 */
#define _GNU_SOURCE
#include "group.h"
#include "liveness.h"
#include "mps_state.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char USAGE[] =
    "usage: nvidia-cuda-mps-control -p 3 (-f | -d) [-m] [-a FILE]   the daemon, in the foreground or not\n"
    "       nvidia-cuda-mps-control -q                              ends it\n"
    "       nvidia-cuda-mps-control MODULE VERB [WORD...] [--KEY=VALUE...]\n";

enum { FAILED = 1, MISUSED = 2, CHECK_MS = 200, NO_INPUT = -1 };

static volatile sig_atomic_t ended;

static void end(int signal) {
  (void)signal;
  ended = 1;
}

static const char *folder_of_daemon(void) {
  const char *named = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (named != NULL && named[0] != 0) return named;
  return geteuid() == 0 ? "/run/nvidia-mps" : "/tmp/nvidia-mps";
}

/* ---- commands ---- */

static int command(int count, char **words) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char text[4096];
  int within = open(folder_of_daemon(), O_PATH | O_DIRECTORY | O_CLOEXEC), file = socket(AF_UNIX, SOCK_STREAM, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control", within);
  if (within < 0 || connect(file, (struct sockaddr *)&address, sizeof address) != 0) {
    fprintf(stderr, "Cannot find MPS control daemon process\n");
    return FAILED;
  }
  for (int i = 0; i < count; i++)
    dprintf(file, "%s%c", words[i], i + 1 < count ? '\t' : '\n');
  char code = '1';
  if (read(file, &code, 1) != 1) return FAILED;
  ssize_t got;
  while ((got = read(file, text, sizeof text)) > 0)
    fwrite(text, 1, (size_t)got, code == '0' ? stdout : stderr);
  return code == '0' ? 0 : FAILED;
}

/* ---- the daemon ---- */

static void close_line(struct mps_line *line) {
  close(line->file);
  line->file = -1;
}

static void answer_command(struct mps_state *state, struct mps_line *line) {
  char *words[24], *output = NULL;
  int count = 0;
  size_t length = 0;
  for (char *word = strtok(line->text, "\t"); word != NULL && count < 24; word = strtok(NULL, "\t"))
    words[count++] = word;
  FILE *out = open_memstream(&output, &length);
  if (out == NULL) return;
  int code = mps_command(state, line->uid, count, words, out);
  fclose(out);
  if (line->file >= 0 && send(line->file, code == 0 ? "0" : "1", 1, MSG_NOSIGNAL) == 1)
    for (size_t sent = 0; sent < length;) {
      ssize_t more = send(line->file, output + sent, length - sent, MSG_NOSIGNAL);
      if (more <= 0) break;
      sent += (size_t)more;
    }
  free(output);
  if (line->file >= 0) close_line(line);
}

/* A client at the daemon's own socket gets a server of its user. */
static struct mps_space *own_space(struct mps_state *state, uint32_t uid) {
  char name[MPS_NAME];
  snprintf(name, sizeof name, "uid_%u", uid);
  if (mps_server_of(state, name) == NULL) mps_create_server(state, name, uid, NULL);
  struct mps_server *server = mps_server_of(state, name);
  return server == NULL ? NULL : mps_space_of(state, server, "default");
}

static void answer_client(struct mps_state *state, struct mps_line *line) {
  char answer[128] = "denied\n";
  if (!state->multiuser && line->uid != geteuid()) {
    send(line->file, answer, strlen(answer), MSG_NOSIGNAL);
    close_line(line);
    return;
  }
  line->space = line->through != NULL ? line->through : own_space(state, line->uid);
  if (line->space == NULL) {
    close_line(line);
    return;
  }
  struct sim_mps_place place = mps_place_of(state, line->space);
  snprintf(answer, sizeof answer, "place %u %u %u %u %u\n", place.server, place.together, place.percentage,
           place.priority, place.gpus);
  send(line->file, answer, strlen(answer), MSG_NOSIGNAL);
}

static void hear(struct mps_state *state, struct mps_line *line) {
  ssize_t got = recv(line->file, line->text + line->length, sizeof line->text - 1 - line->length, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    close_line(line);
    return;
  }
  line->length += (size_t)got;
  line->text[line->length] = 0;
  char *newline = strchr(line->text, '\n');
  if (newline == NULL) {
    if (line->length + 1 >= sizeof line->text) close_line(line);
    return;
  }
  *newline = 0;
  line->length = 0;
  if (line->space != NULL) return;
  if (strcmp(line->text, "client") == 0)
    answer_client(state, line);
  else
    answer_command(state, line);
}

static void welcome(struct mps_state *state, int listener, struct mps_space *through) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  int file = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (file < 0) return;
  for (int i = 0; i < MPS_LINES; i++) {
    struct mps_line *line = &state->lines[i];
    if (line->file >= 0) continue;
    if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) break;
    line->file = file;
    line->pid = (uint32_t)peer.pid;
    line->uid = peer.uid;
    line->through = through;
    line->space = NULL;
    line->length = 0;
    return;
  }
  close(file);
}

/* What a descriptor of the poll stands for. */
struct watched {
  struct mps_space *space;
  struct mps_line *line;
};

enum { MOST_WATCHED = 2 + MPS_SERVERS + MPS_SPACES + MPS_LINES };

static nfds_t watch(struct mps_state *state, int own, int input, struct pollfd *files, struct watched *watched) {
  nfds_t count = 0;
  files[count++] = (struct pollfd){.fd = input, .events = POLLIN};
  files[count++] = (struct pollfd){.fd = own, .events = POLLIN};
  for (int i = 0; i < MPS_SERVERS; i++) {
    struct mps_server *server = &state->servers[i];
    if (server->name[0] == 0) continue;
    watched[count] = (struct watched){.space = mps_space_of(state, server, "default")};
    files[count++] = (struct pollfd){.fd = server->listener, .events = POLLIN};
  }
  for (int i = 0; i < MPS_SPACES; i++) {
    if (state->spaces[i].name[0] == 0) continue;
    watched[count] = (struct watched){.space = &state->spaces[i]};
    files[count++] = (struct pollfd){.fd = state->spaces[i].listener, .events = POLLIN};
  }
  for (int i = 0; i < MPS_LINES; i++) {
    if (state->lines[i].file < 0) continue;
    watched[count] = (struct watched){.line = &state->lines[i]};
    files[count++] = (struct pollfd){.fd = state->lines[i].file, .events = POLLIN};
  }
  return count;
}

static bool is_told_to_end(int input) {
  char text[256];
  ssize_t got = read(input, text, sizeof text - 1);
  if (got <= 0) return true;
  text[got] = 0;
  return strstr(text, "quit") != NULL;
}

/* One event a turn: it may change what the others stand for. */
static void turn(struct mps_state *state, int own, int input) {
  static struct pollfd files[MOST_WATCHED];
  static struct watched watched[MOST_WATCHED];
  nfds_t count = watch(state, own, input, files, watched);
  if (poll(files, count, CHECK_MS) <= 0) return;
  if (files[0].revents != 0 && is_told_to_end(input)) {
    state->quit = true;
    return;
  }
  if (files[1].revents != 0) {
    welcome(state, own, NULL);
    return;
  }
  for (nfds_t i = 2; i < count; i++) {
    if (files[i].revents == 0) continue;
    if (watched[i].line != NULL)
      hear(state, watched[i].line);
    else
      welcome(state, files[i].fd, watched[i].space);
    return;
  }
}

static bool is_running(struct sim_machine *machine) {
  uint32_t daemon = atomic_load(&machine->mps_daemon);
  return daemon != 0 && sim_is_alive(machine, &machine->processes[daemon - 1]);
}

static int serve(struct mps_state *state, const char *file, int input) {
  char why[512], path[4096];
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (int i = 0; i < MPS_LINES; i++)
    state->lines[i].file = -1;
  int row = sim_process_enter(state->machine, false);
  if (is_running(state->machine)) {
    fprintf(stderr, "An instance of this daemon is already running\n");
    return FAILED;
  }
  int own = row < 0 ? -1 : mps_listen(state->folder);
  if (own < 0) {
    fprintf(stderr, "%s: no socket can be made here\n", state->folder);
    return FAILED;
  }
  atomic_store(&state->machine->mps_daemon, (uint32_t)row + 1);
  if (file != NULL && !mps_apply_file(state, file, why, sizeof why)) {
    fprintf(stderr, "configuration error: %s\n", why);
    state->quit = true;
  }
  printf("To connect CUDA applications to this daemon, set CUDA_MPS_PIPE_DIRECTORY=%s\n", state->folder);
  fflush(stdout);
  int code = state->quit ? FAILED : 0;
  while (!ended && !state->quit) {
    turn(state, own, input);
    mps_check_gpus(state);
  }
  for (int i = 0; i < MPS_SERVERS; i++)
    if (state->servers[i].name[0] != 0) mps_delete_server(state, &state->servers[i], SIM_MPS_RPC_FAILURE);
  snprintf(path, sizeof path, "%s/control", state->folder);
  unlink(path);
  atomic_store(&state->machine->mps_daemon, 0);
  sim_process_leave(state->machine, (uint32_t)row);
  return code;
}

static int run_daemon(bool foreground, bool multiuser, const char *file) {
  char why[512];
  static struct mps_state state;
  state =
      (struct mps_state){.folder = folder_of_daemon(), .multiuser = multiuser, .memacct = true, .context_share = true};
  state.machine = sim_machine_open(why, sizeof why);
  if (state.machine == NULL) {
    fprintf(stderr, "gpu-sim: %s\n", why);
    return FAILED;
  }
  if (sim_node_branch(&state.machine->node) < SIM_LIMITS_BRANCH) {
    fprintf(stderr, "protocol 3 needs driver %d, this is %s\n", SIM_LIMITS_BRANCH, state.machine->node.driver_version);
    return FAILED;
  }
  if (!foreground && daemon(1, 0) != 0) return FAILED;
  return serve(&state, file, foreground ? STDIN_FILENO : NO_INPUT);
}

int main(int count, char **words) {
  static const struct option options[] = {{"foreground", no_argument, NULL, 'f'},
                                          {"daemon", no_argument, NULL, 'd'},
                                          {"multiuser", no_argument, NULL, 'm'},
                                          {"apply", required_argument, NULL, 'a'},
                                          {"quit", no_argument, NULL, 'q'},
                                          {"protocol", required_argument, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};
  bool foreground = false, background = false, multiuser = false;
  const char *file = NULL, *protocol = getenv("CUDA_MPS_PROTOCOL_VERSION");
  if (count > 1 && words[1][0] != '-') return command(count - 1, words + 1);
  for (int option; (option = getopt_long(count, words, "fdma:qp:", options, NULL)) != -1;) {
    if (option == 'q') return command(2, (char *[]){"daemon", "quit"});
    if (option == 'f') foreground = true;
    if (option == 'd') background = true;
    if (option == 'm') multiuser = true;
    if (option == 'a') file = optarg;
    if (option == 'p' && protocol == NULL) protocol = optarg;
  }
  if (foreground == background || protocol == NULL || strcmp(protocol, "3") != 0) {
    fputs(USAGE, stderr);
    return MISUSED;
  }
  return run_daemon(foreground, multiuser, file);
}
