/* The control language: `module verb [words] [--key=value] [--flag]`. */
#define _GNU_SOURCE
#include "mps_state.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, MOST_WORDS = 3, MOST_OPTIONS = 16 };

/* A command that was taken apart. */
struct call {
  struct mps_state *state;
  uint32_t uid;
  FILE *out;
  const char *words[MOST_WORDS];
  int count;
  struct {
    const char *key, *value;
  } options[MOST_OPTIONS];
  int option_count;
};

static int refuse(const struct call *call, const char *subject, const char *why) {
  fprintf(call->out, "%s: %s\n", subject, why);
  return FAILED;
}

/* The value of an option; "" for a flag; NULL: not given. */
static const char *option(const struct call *call, const char *key) {
  for (int i = 0; i < call->option_count; i++)
    if (strcmp(call->options[i].key, key) == 0) return call->options[i].value;
  return NULL;
}

static bool is_csv(const struct call *call) {
  const char *format = option(call, "format");
  return format != NULL && strncmp(format, "csv", 3) == 0;
}

static void header(const struct call *call, const char *names) {
  const char *format = option(call, "format");
  if (format != NULL && strstr(format, "noheader") != NULL) return;
  for (; *names != 0; names++)
    fputc(*names == ',' && !is_csv(call) ? '\t' : *names, call->out);
  fputc('\n', call->out);
}

#define END ((const char *)NULL)

/* One row; its fields end with END. */
static void row(const struct call *call, const char *field, ...) {
  va_list fields;
  va_start(fields, field);
  for (const char *each = field; each != NULL; each = va_arg(fields, const char *))
    fprintf(call->out, "%s%s", each == field ? "" : is_csv(call) ? "," : "\t", each[0] == 0 ? "-" : each);
  va_end(fields);
  fputc('\n', call->out);
}

static struct mps_server *server_named(const struct call *call, const char *name, int *code) {
  struct mps_server *server = name == NULL ? NULL : mps_server_of(call->state, name);
  *code = server == NULL ? refuse(call, name == NULL ? "--server" : name, "there is no such server") : DONE;
  return server;
}

/* ---- limits ---- */

const char *mps_set_limit(struct mps_limits *limits, const char *name, const char *value) {
  char *end;
  unsigned long number = strtoul(value, &end, 10);
  bool whole = *value != 0 && *end == 0;
  if (strcmp(name, "active-thread-percentage") == 0) {
    if (!whole || number < 1 || number > 100) return "expected a percentage from 1 to 100";
    limits->percentage = (uint32_t)number;
  } else if (strcmp(name, "client-priority") == 0) {
    if (!whole || number > 1) return "expected 0 (normal) or 1 (below normal)";
    limits->priority = (int32_t)number;
  } else if (strcmp(name, "pinned-memory-limit") == 0) {
    if (end == value || strlen(value) >= sizeof limits->memory) return "expected an amount such as 4G, 512M or 1024K";
    snprintf(limits->memory, sizeof limits->memory, "%s", value);
  } else {
    return "there is no such limit";
  }
  return NULL;
}

static int set_limits(const struct call *call, struct mps_limits *limits, const char *other) {
  int set = 0;
  struct mps_limits next = *limits;
  for (int i = 0; i < call->option_count; i++) {
    const char *key = call->options[i].key;
    if (strcmp(key, "server") == 0 || (other != NULL && strcmp(key, other) == 0)) continue;
    const char *why = mps_set_limit(&next, key, call->options[i].value);
    if (why != NULL) return refuse(call, key, why);
    set++;
  }
  bool any = set > 0 || (other != NULL && option(call, other) != NULL);
  if (!any) return refuse(call, "set", "at least one option is required");
  *limits = next;
  return DONE;
}

static void limit_texts(const struct mps_limits *limits, char percentage[16], char priority[16]) {
  percentage[0] = priority[0] = 0;
  if (limits->percentage != 0) snprintf(percentage, 16, "%u", limits->percentage);
  if (limits->priority >= 0) snprintf(priority, 16, "%d", limits->priority);
}

/* ---- server ---- */

static void gpu_list(const struct call *call, uint32_t gpus, char *text, size_t size) {
  size_t length = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < call->state->machine->node.count && length < size; i++)
    if (gpus >> i & 1)
      length += (size_t)snprintf(text + length, size - length, "%s%s", length == 0 ? "" : ";",
                                 call->state->machine->node.gpus[i].uuid);
}

static int server_create(const struct call *call) {
  const char *uid = option(call, "uid");
  char name[MPS_NAME];
  if (call->count == 0 && uid == NULL) return refuse(call, "server create", "a name or --uid is required");
  uint32_t owner = uid == NULL ? call->uid : (uint32_t)strtoul(uid, NULL, 10);
  if (call->state->multiuser && uid != NULL && owner != 0) return refuse(call, "--uid", "in multiuser mode only 0");
  snprintf(name, sizeof name, "uid_%u", owner);
  const char *wanted = call->count > 0 ? call->words[0] : name;
  const char *why = mps_create_server(call->state, wanted, owner, option(call, "allowed-devices"));
  if (why != NULL) return refuse(call, wanted, why);
  const char *locality = option(call, "locality-domains");
  struct mps_server *made = mps_server_of(call->state, wanted);
  if (made != NULL && locality != NULL) made->locality = strcmp(locality, "true") == 0;
  return DONE;
}

static int server_delete(const struct call *call) {
  int code;
  struct mps_server *server = server_named(call, call->words[0], &code);
  if (server == NULL) return code;
  if (option(call, "force") == NULL && mps_clients(call->state, server, NULL) > 0)
    return refuse(call, server->name, "it has clients; --force ends them");
  mps_delete_server(call->state, server, SIM_MPS_CLIENT_TERMINATED);
  return DONE;
}

static int server_list(const struct call *call) {
  char uid[16], pid[16], gpus[1024], path[1024];
  header(call, "name,uid,pid,status,pipe-directory,allowed-devices,context-ids");
  for (int i = 0; i < MPS_SERVERS; i++) {
    const struct mps_server *server = &call->state->servers[i];
    if (server->name[0] == 0 || (call->count > 0 && strcmp(call->words[0], server->name) != 0)) continue;
    snprintf(uid, sizeof uid, "%u", server->uid);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(path, sizeof path, "%s/%s", call->state->folder, server->name);
    gpu_list(call, server->gpus, gpus, sizeof gpus);
    row(call, server->name, uid, pid, "Ready", path, gpus, "", END);
  }
  return DONE;
}

static int server_set(const struct call *call) {
  int code;
  struct mps_server *server = server_named(call, call->words[0], &code);
  if (server == NULL) return code;
  const char *locality = option(call, "locality-domains");
  if (locality != NULL) server->locality = strcmp(locality, "true") == 0;
  return set_limits(call, &mps_space_of(call->state, server, "default")->limits, "locality-domains");
}

/* ---- namespace ---- */

static struct mps_space *space_named(const struct call *call, const char *of, int *code) {
  struct mps_server *server = server_named(call, of, code);
  if (server == NULL) return NULL;
  const char *name = call->count > 0 ? call->words[0] : "";
  struct mps_space *space = mps_space_of(call->state, server, name);
  if (space == NULL) *code = refuse(call, name, "there is no such namespace");
  return space;
}

static int space_create(const struct call *call) {
  int code;
  struct mps_server *server = server_named(call, option(call, "server"), &code);
  if (server == NULL) return code;
  if (call->count == 0) return refuse(call, "namespace create", "a name is required");
  const char *why = mps_create_space(call->state, server, call->words[0]);
  return why == NULL ? DONE : refuse(call, call->words[0], why);
}

static int space_delete(const struct call *call) {
  int code;
  struct mps_space *space = space_named(call, option(call, "server"), &code);
  if (space == NULL) return code;
  if (strcmp(space->name, "default") == 0) return refuse(call, space->name, "it goes with its server");
  if (option(call, "force") == NULL && mps_clients(call->state, space->server, space) > 0)
    return refuse(call, space->name, "it has clients; --force ends them");
  mps_delete_space(call->state, space, SIM_MPS_CLIENT_TERMINATED);
  return DONE;
}

static int space_list(const struct call *call) {
  char percentage[16], priority[16], path[1024];
  const char *of = option(call, "server");
  header(call, "name,server,server-status,pinned-memory-limit,active-thread-percentage,client-priority,pipe-directory");
  for (int i = 0; i < MPS_SPACES; i++) {
    const struct mps_space *space = &call->state->spaces[i];
    if (space->name[0] == 0 || (of != NULL && strcmp(of, space->server->name) != 0)) continue;
    if (call->count > 0 && strcmp(call->words[0], space->name) != 0) continue;
    limit_texts(&space->limits, percentage, priority);
    snprintf(path, sizeof path, "%s/%s/%s", call->state->folder, space->server->name, space->name);
    row(call, space->name, space->server->name, "Ready", space->limits.memory, percentage, priority, path, END);
  }
  return DONE;
}

static int space_set(const struct call *call) {
  int code;
  struct mps_space *space = space_named(call, option(call, "server"), &code);
  return space == NULL ? code : set_limits(call, &space->limits, NULL);
}

static int space_get(const struct call *call) {
  int code;
  char percentage[16], priority[16], path[1024];
  struct mps_space *space = space_named(call, call->words[1], &code);
  if (space == NULL) return code;
  limit_texts(&space->limits, percentage, priority);
  snprintf(path, sizeof path, "%s/%s/%s", call->state->folder, space->server->name, space->name);
  const struct {
    const char *name, *value;
  } fields[] = {{"name", space->name},
                {"server", space->server->name},
                {"server-status", "Ready"},
                {"pipe-directory", path},
                {"pinned-memory-limit", space->limits.memory},
                {"active-thread-percentage", percentage},
                {"client-priority", priority}};
  for (size_t i = 0; call->count > 2 && i < sizeof fields / sizeof fields[0]; i++)
    if (strcmp(fields[i].name, call->words[2]) == 0) {
      fprintf(call->out, "%s\n", fields[i].value);
      return DONE;
    }
  return refuse(call, "namespace get", "there is no such field");
}

/* ---- client ---- */

/* Its arguments, with spaces between them. */
static void command_of(uint32_t pid, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  FILE *file = fopen(path, "re");
  size_t length = file == NULL ? 0 : fread(text, 1, size - 1, file);
  if (file != NULL) fclose(file);
  while (length > 0 && text[length - 1] == 0)
    length--;
  for (size_t i = 0; i < length; i++)
    if (text[i] == 0 || text[i] == '\n') text[i] = ' ';
  text[length] = 0;
}

static int client_list(const struct call *call) {
  char pid[16], gpu[16], command[256];
  const char *of = option(call, "server");
  header(call, "pid,server,device,namespace,command");
  for (int i = 0; i < MPS_LINES; i++) {
    const struct mps_line *line = &call->state->lines[i];
    if (line->file < 0 || line->space == NULL) continue;
    const struct mps_server *server = line->space->server;
    if (of != NULL && strcmp(of, server->name) != 0) continue;
    snprintf(pid, sizeof pid, "%u", line->pid);
    command_of(line->pid, command, sizeof command);
    for (uint32_t each = 0; each < call->state->machine->node.count; each++) {
      if (!(server->gpus >> each & 1)) continue;
      snprintf(gpu, sizeof gpu, "%u", each);
      row(call, pid, server->name, gpu, line->space->name, command, END);
    }
  }
  return DONE;
}

static int client_terminate(const struct call *call) {
  const char *text = call->count > 0 ? call->words[0] : "";
  for (int i = 0; i < MPS_LINES; i++) {
    struct mps_line *line = &call->state->lines[i];
    if (line->file < 0 || line->space == NULL || line->pid != strtoul(text, NULL, 10)) continue;
    int process = sim_mps_process(call->state->machine, line->pid);
    if (process >= 0) sim_mps_end_client(call->state->machine, (uint32_t)process, SIM_MPS_CLIENT_TERMINATED);
    line->space = NULL;
    return DONE;
  }
  return refuse(call, text, "there is no such client");
}

/* ---- device, sm-partition, features ---- */

static int device_list(const struct call *call) {
  char index[16], bus[32], sms[16], chunks[16];
  header(call, "Ordinal,Server,PCI ID,Device UUID,Name,Total SMs,Total Chunks,Attributes");
  for (int s = 0; s < MPS_SERVERS; s++) {
    const struct mps_server *server = &call->state->servers[s];
    for (uint32_t i = 0; server->name[0] != 0 && i < call->state->machine->node.count; i++) {
      const struct sim_gpu *gpu = &call->state->machine->node.gpus[i];
      if (!(server->gpus >> i & 1)) continue;
      snprintf(index, sizeof index, "%u", i);
      snprintf(bus, sizeof bus, "%08X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
      snprintf(sms, sizeof sms, "%u", gpu->sms);
      snprintf(chunks, sizeof chunks, "%u", gpu->sms / MPS_CHUNK_SMS);
      row(call, index, server->name, bus, gpu->uuid, gpu->model, sms, chunks, "", END);
    }
  }
  return DONE;
}

static int one_gpu(const struct call *call, uint32_t *gpu) {
  const char *device = option(call, "device");
  uint32_t mask = 0;
  if (device == NULL || !mps_read_gpus(call->state, device, &mask) || __builtin_popcount(mask) != 1)
    return refuse(call, "--device", "expected the ordinal or the UUID of a device");
  *gpu = (uint32_t)__builtin_ctz(mask);
  return DONE;
}

static uint32_t sms_of(const struct call *call, const struct mps_partition *partition) {
  uint32_t sms = call->state->machine->node.gpus[partition->gpu].sms;
  return partition->chunks * MPS_CHUNK_SMS + (partition->remainder ? sms % MPS_CHUNK_SMS : 0);
}

static struct mps_partition *partition_named(const struct call *call, const struct mps_server *server, uint32_t gpu) {
  for (int i = 0; call->count > 0 && i < MPS_PARTITIONS; i++) {
    struct mps_partition *one = &call->state->partitions[i];
    if (one->server == server && one->gpu == gpu && strcmp(one->name, call->words[0]) == 0) return one;
  }
  return NULL;
}

static int partition_create(const struct call *call) {
  int code;
  uint32_t gpu;
  struct mps_server *server = server_named(call, option(call, "server"), &code);
  if (server == NULL || (code = one_gpu(call, &gpu)) != DONE) return code;
  const char *chunks = option(call, "chunks"), *remainder = option(call, "include-remainder");
  const char *name = call->count > 0 ? call->words[0] : "";
  const char *why =
      mps_create_partition(call->state, server, name, gpu, chunks == NULL ? 0 : (uint32_t)strtoul(chunks, NULL, 10),
                           remainder != NULL && strcmp(remainder, "true") == 0);
  if (why != NULL) return refuse(call, name, why);
  fprintf(call->out, "SM partition '%s' created on device %s (sm-count=%u)\n", name,
          call->state->machine->node.gpus[gpu].uuid, sms_of(call, partition_named(call, server, gpu)));
  return DONE;
}

static int partition_delete(const struct call *call) {
  int code;
  uint32_t gpu;
  struct mps_server *server = server_named(call, option(call, "server"), &code);
  if (server == NULL || (code = one_gpu(call, &gpu)) != DONE) return code;
  struct mps_partition *partition = partition_named(call, server, gpu);
  if (partition == NULL) return refuse(call, "sm-partition delete", "there is no such partition");
  partition->name[0] = 0;
  return DONE;
}

static int partition_list(const struct call *call) {
  char chunks[16], sms[16];
  const char *of = option(call, "server");
  header(call, "server,device,name,chunks,sm-count,include-remainder,status,visible-uuid");
  for (int i = 0; i < MPS_PARTITIONS; i++) {
    const struct mps_partition *one = &call->state->partitions[i];
    if (one->name[0] == 0 || (of != NULL && strcmp(of, one->server->name) != 0)) continue;
    snprintf(chunks, sizeof chunks, "%u", one->chunks);
    snprintf(sms, sizeof sms, "%u", sms_of(call, one));
    row(call, one->server->name, call->state->machine->node.gpus[one->gpu].uuid, one->name, chunks, sms,
        one->remainder ? "true" : "false", "configured", "", END);
  }
  return DONE;
}

static bool *feature_named(const struct call *call) {
  const char *name = call->count > 0 ? call->words[0] : "";
  if (strcmp(name, "memacct") == 0) return &call->state->memacct;
  return strcmp(name, "context-share") == 0 ? &call->state->context_share : NULL;
}

static int feature_switch(const struct call *call, bool on) {
  bool *feature = feature_named(call);
  if (feature == NULL) return refuse(call, "feature", "expected memacct or context-share");
  *feature = on;
  return DONE;
}

static int feature_enable(const struct call *call) {
  return feature_switch(call, true);
}

static int feature_disable(const struct call *call) {
  return feature_switch(call, false);
}

static int feature_describe(const struct call *call) {
  const struct mps_state *state = call->state;
  header(call, "FEATURE,STATE,MODULE,COVERS");
  row(call, "memacct", state->memacct ? "enabled (default)" : "disabled", "memacct", "", END);
  row(call, "context-share", state->context_share ? "enabled (default)" : "disabled", "context-share", "", END);
  return DONE;
}

static int memacct_set(const struct call *call) {
  const char *value = option(call, "audit_log");
  if (value == NULL) return refuse(call, "memacct set", "the only key is audit_log");
  call->state->audit_log = strcmp(value, "true") == 0;
  return DONE;
}

static int daemon_quit(const struct call *call) {
  call->state->quit = true;
  return DONE;
}

static const struct {
  const char *module, *verb;
  int (*run)(const struct call *call);
} verbs[] = {
    {"server", "create", server_create},
    {"server", "delete", server_delete},
    {"server", "list", server_list},
    {"server", "set", server_set},
    {"namespace", "create", space_create},
    {"namespace", "delete", space_delete},
    {"namespace", "list", space_list},
    {"namespace", "set", space_set},
    {"namespace", "get", space_get},
    {"client", "list", client_list},
    {"client", "terminate", client_terminate},
    {"device", "list", device_list},
    {"sm-partition", "create", partition_create},
    {"sm-partition", "delete", partition_delete},
    {"sm-partition", "list", partition_list},
    {"feature", "enable", feature_enable},
    {"feature", "disable", feature_disable},
    {"feature", "describe", feature_describe},
    {"memacct", "set", memacct_set},
    {"daemon", "quit", daemon_quit}, /* -q */
};

/* Sorts a word into positional words, options and flags. */
static bool take(struct call *call, char *word) {
  bool dashed = strncmp(word, "--", 2) == 0;
  char *value = strchr(word, '=');
  if (!dashed && value == NULL) {
    if (call->count == MOST_WORDS) return false;
    call->words[call->count++] = word;
    return true;
  }
  if (call->option_count == MOST_OPTIONS) return false;
  if (value != NULL) *value++ = 0;
  call->options[call->option_count].key = dashed ? word + 2 : word;
  call->options[call->option_count++].value = value == NULL ? "" : value;
  return true;
}

int mps_command(struct mps_state *state, uint32_t uid, int count, char **words, FILE *out) {
  struct call call = {.state = state, .uid = uid, .out = out};
  for (int i = 2; i < count; i++)
    if (!take(&call, words[i])) return refuse(&call, words[i], "too many words");
  for (size_t i = 0; count >= 2 && i < sizeof verbs / sizeof verbs[0]; i++)
    if (strcmp(verbs[i].module, words[0]) == 0 && strcmp(verbs[i].verb, words[1]) == 0) return verbs[i].run(&call);
  return refuse(&call, count > 0 ? words[0] : "", "there is no such command");
}
