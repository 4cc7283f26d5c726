#include "log.h"
#include <string.h>
#include <unistd.h>

#define MOST_LINES 16

static uint32_t log_level = VGPU_LOG_ERROR;
static uint32_t lines;

void log_set_level(uint32_t level) {
  __atomic_store_n(&log_level, level, __ATOMIC_RELAXED);
}

static size_t append(char *line, size_t length, size_t room, const char *text) {
  size_t add = text == NULL ? 0 : strlen(text);
  if (add > room - length) add = room - length;
  if (add > 0) memcpy(line + length, text, add);
  return length + add;
}

void log_line(enum vgpu_log_level level, const char *what, const char *detail) {
  if ((uint32_t)level > __atomic_load_n(&log_level, __ATOMIC_RELAXED)) return;
  if (__atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) >= MOST_LINES) return;
  char line[512];
  size_t length = append(line, 0, sizeof line - 1, "gpu-manager: ");
  length = append(line, length, sizeof line - 1, what);
  length = append(line, length, sizeof line - 1, detail);
  line[length++] = '\n';
  /* A failed write, for example to a closed stderr, must not affect the program. */
  if (write(STDERR_FILENO, line, length) < 0) return;
}
