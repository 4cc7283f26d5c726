/* The configuration file of the MPS control daemon: the tables and keys of TOML that the daemon knows, and no others.
 */
#include "mps_state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct reader {
  struct mps_state *state;
  char table[256]; /* without its brackets */
  struct mps_server *server;
  struct mps_space *space;
  int gpu; /* of [[servers.NAME.devices]] */
  char partition[MPS_NAME];
};

static char *trimmed(char *text) {
  while (isspace((unsigned char)*text))
    text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1]))
    text[--length] = 0;
  return text;
}

/* Splits "servers.a.namespaces.b"; returns the number of parts. */
static int split(char *text, char *parts[4]) {
  int count = 1;
  parts[0] = text;
  for (char *dot = strchr(text, '.'); dot != NULL && count < 4; dot = strchr(dot + 1, '.')) {
    *dot = 0;
    parts[count++] = dot + 1;
  }
  return count;
}

static const char *open_server(struct reader *reader, const char *name) {
  reader->server = mps_server_of(reader->state, name);
  const char *why = reader->server == NULL ? mps_create_server(reader->state, name, 0, NULL) : NULL;
  if (why == NULL) reader->server = mps_server_of(reader->state, name);
  return why;
}

static const char *open_table(struct reader *reader, const char *name) {
  char text[sizeof reader->table], *parts[4];
  snprintf(reader->table, sizeof reader->table, "%s", name);
  snprintf(text, sizeof text, "%s", name);
  int count = split(text, parts);
  reader->space = NULL;
  if (strcmp(parts[0], "features") == 0 && count == 2)
    return strcmp(parts[1], "memacct") == 0 || strcmp(parts[1], "context-share") == 0 ? NULL : "no such feature";
  if (strcmp(parts[0], "servers") != 0 || count < 2) return "no such table";
  const char *why = open_server(reader, parts[1]);
  if (why != NULL || reader->server == NULL) return why;
  if (count == 2) reader->space = mps_space_of(reader->state, reader->server, "default");
  if (count < 4 || strcmp(parts[2], "namespaces") != 0) return NULL;
  reader->space = mps_space_of(reader->state, reader->server, parts[3]);
  if (reader->space == NULL) why = mps_create_space(reader->state, reader->server, parts[3]);
  reader->space = mps_space_of(reader->state, reader->server, parts[3]);
  return why;
}

static const char *set_feature(struct reader *reader, const char *key, const char *value) {
  bool on = strcmp(value, "true") == 0, memory = strcmp(reader->table, "features.memacct") == 0;
  if (strcmp(key, "enabled") == 0)
    *(memory ? &reader->state->memacct : &reader->state->context_share) = on;
  else if (memory && strcmp(key, "audit_log") == 0)
    reader->state->audit_log = on;
  else if (memory || strcmp(key, "default_socket") != 0)
    return "no such key";
  return NULL;
}

static const char *set_device(struct reader *reader, const char *key, const char *value) {
  uint32_t mask = 0;
  if (strcmp(key, "uuid") == 0) {
    if (!mps_read_gpus(reader->state, value, &mask)) return "no such device";
    reader->gpu = __builtin_ctz(mask);
  } else if (strcmp(key, "name") == 0) {
    snprintf(reader->partition, sizeof reader->partition, "%s", value);
  } else if (strcmp(key, "chunks") == 0) {
    return mps_create_partition(reader->state, reader->server, reader->partition, (uint32_t)reader->gpu,
                                (uint32_t)strtoul(value, NULL, 10), false);
  } else if (strcmp(key, "include_remainder") != 0) {
    return "no such key";
  }
  return NULL;
}

static const char *set_key(struct reader *reader, char *key, const char *value) {
  if (reader->table[0] == 0) return strcmp(key, "schema_version") == 0 ? NULL : "no such key";
  if (strncmp(reader->table, "features.", 9) == 0) return set_feature(reader, key, value);
  if (reader->server == NULL) return NULL;
  if (strstr(reader->table, ".devices") != NULL) return set_device(reader, key, value);
  bool whole = strstr(reader->table, ".namespaces.") == NULL;
  if (whole && strcmp(key, "allowed_devices") == 0) {
    if (!mps_read_gpus(reader->state, value, &reader->server->gpus)) {
      mps_delete_server(reader->state, reader->server, SIM_MPS_RPC_FAILURE);
      reader->server = NULL;
    }
    return NULL;
  }
  if (whole && strcmp(key, "uid") == 0) {
    reader->server->uid = (uint32_t)strtoul(value, NULL, 10);
    return NULL;
  }
  if (whole && strcmp(key, "locality_domains") == 0) {
    reader->server->locality = strcmp(value, "true") == 0;
    return NULL;
  }
  for (char *at = key; *at != 0; at++)
    if (*at == '_') *at = '-';
  return mps_set_limit(&reader->space->limits, key, value);
}

static const char *read_line(struct reader *reader, char *line) {
  line[strcspn(line, "#\n")] = 0;
  line = trimmed(line);
  if (*line == 0) return NULL;
  if (*line == '[') {
    line += strspn(line, "[");
    line[strcspn(line, "]")] = 0;
    return open_table(reader, line);
  }
  char *value = strchr(line, '=');
  if (value == NULL) return "expected a table or a key with its value";
  *value++ = 0;
  value = trimmed(value);
  if (*value == '"') value[strcspn(value + 1, "\"") + 1] = 0, value++;
  return set_key(reader, trimmed(line), value);
}

bool mps_apply_file(struct mps_state *state, const char *path, char *why, size_t size) {
  struct reader reader = {.state = state};
  char line[512];
  const char *problem = NULL;
  int number = 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    snprintf(why, size, "%s cannot be read", path);
    return false;
  }
  while (problem == NULL && fgets(line, sizeof line, file) != NULL) {
    number++;
    problem = read_line(&reader, line);
  }
  fclose(file);
  if (problem != NULL) snprintf(why, size, "%s, line %d: %s", path, number, problem);
  return problem == NULL;
}
