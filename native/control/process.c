#define _GNU_SOURCE
#include "process.h"
#include "os.h"
#include "vgpu_abi.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Inode number of the initial pid namespace on every kernel (PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE 0xeffffffcu

/* Fields of /proc/<pid>/stat, numbered as in proc(5). */
enum { FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22, FIELD_START_STACK = 28 };

struct stat_line {
  char state;
  uint64_t threads;
  uint64_t start_ticks;
  uint64_t start_stack;
  char name[16];
};

static const char *parse_number(const char *text, uint64_t *number) {
  *number = 0;
  while (*text >= '0' && *text <= '9')
    *number = *number * 10 + (uint64_t)(*text++ - '0');
  return text;
}

static bool parse_stat(const char *text, struct stat_line *line) {
  /* The name is in parentheses and may itself contain parentheses, so the last one ends it. */
  const char *open = strchr(text, '(');
  const char *close = strrchr(text, ')');
  if (open == NULL || close == NULL || close < open || close[1] != ' ') return false;
  memset(line, 0, sizeof *line);
  size_t length = (size_t)(close - open - 1);
  memcpy(line->name, open + 1, length < sizeof line->name - 1 ? length : sizeof line->name - 1);
  const char *field = close + 2;
  for (int number = FIELD_STATE; number <= FIELD_START_STACK; number++) {
    if (number == FIELD_STATE) line->state = *field;
    if (number == FIELD_THREADS) parse_number(field, &line->threads);
    if (number == FIELD_START) parse_number(field, &line->start_ticks);
    if (number == FIELD_START_STACK) parse_number(field, &line->start_stack);
    field = strchr(field, ' ');
    if (field == NULL) return false;
    field++;
  }
  line->start_ticks &= (1ull << VGPU_SLOT_START_BITS) - 1;
  return true;
}

static bool read_stat(const char *path, struct stat_line *line) {
  char text[1024];
  return os_read_text(path, text, sizeof text) > 0 && parse_stat(text, line);
}

static void stat_path(char *path, uint32_t pid) {
  char digits[12];
  int count = 0;
  do
    digits[count++] = (char)('0' + pid % 10);
  while ((pid /= 10) != 0);
  memcpy(path, "/proc/", 6);
  path += 6;
  while (count > 0)
    *path++ = digits[--count];
  memcpy(path, "/stat", 6);
}

static bool read_stat_of(uint32_t pid, struct stat_line *line) {
  char path[32];
  stat_path(path, pid);
  return read_stat(path, line);
}

void process_self(struct process_identity *self) {
  struct stat_line line;
  memset(self, 0, sizeof *self);
  self->pid = (uint32_t)getpid();
  if (read_stat("/proc/self/stat", &line)) {
    self->start_ticks = line.start_ticks;
    self->start_stack = line.start_stack;
    memcpy(self->name, line.name, sizeof self->name);
  }
  char link[64]; /* "pid:[4026531836]" */
  ssize_t length = readlink("/proc/self/ns/pid", link, sizeof link - 1);
  if (length > 5) {
    link[length] = '\0';
    parse_number(link + 5, &self->pid_namespace);
  }
}

bool process_is_of_host(void) {
  struct process_identity self;
  process_self(&self);
  return self.pid_namespace == FIRST_PID_NAMESPACE;
}

bool process_is_gone(const struct process_identity *described, const struct process_identity *self) {
  if (described->pid_namespace == 0 || described->pid_namespace != self->pid_namespace) return false;
  if (kill((pid_t)described->pid, 0) != 0 && errno == ESRCH) return true;
  struct stat_line line;
  if (!read_stat_of(self->pid, &line) || line.start_ticks != self->start_ticks) return false;
  if (!read_stat_of(described->pid, &line)) return false;
  if (described->start_ticks != 0 && line.start_ticks != described->start_ticks) return true;
  /* The first thread may have ended while other threads continue; then the process is still alive. */
  if ((line.state == 'Z' || line.state == 'X') && line.threads <= 1) return true;
  return described->start_stack != 0 && line.start_stack != 0 && line.start_stack != described->start_stack;
}
