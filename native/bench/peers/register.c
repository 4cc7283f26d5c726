/*
 * Replaces the registration programs of two peers and the node agents that they ask: adds the process that started it
 * to the container's list of processes. Its own name says whose: gpu-client (vcuda-controller: a sorted binary list) or
 * device-client (vgpu-manager: a text, one process a line).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MOST = 1000 };

static int by_value(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

static int read_text(int file, int *pids) {
  int count = 0;
  FILE *stream = fdopen(dup(file), "r");
  while (stream != NULL && count < MOST && fscanf(stream, "%d", &pids[count]) == 1)
    count++;
  if (stream != NULL) fclose(stream);
  return count;
}

static int read_binary(int file, int *pids) {
  ssize_t size = pread(file, pids, MOST * sizeof *pids, 0);
  return size > 0 ? (int)(size / (ssize_t)sizeof *pids) : 0;
}

static int written(int file, const void *bytes, ssize_t size) {
  return pwrite(file, bytes, (size_t)size, 0) == size && ftruncate(file, size) == 0;
}

static int write_text(int file, const int *pids, int count) {
  static char text[16 * (MOST + 1)];
  int length = 0;
  for (int i = 0; i < count; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%d\n", pids[i]);
  return written(file, text, length);
}

int main(int argc, char **argv) {
  static int pids[MOST + 1];
  int is_text = argc > 0 && strstr(argv[0], "device-client") != NULL, alive = 0;
  int file = open(is_text ? "/etc/vgpu-manager/config/pids.config" : "/etc/vcuda/pids.config", O_RDWR | O_CREAT, 0666);
  if (file < 0 || flock(file, LOCK_EX) != 0) return 1;
  int known = is_text ? read_text(file, pids) : read_binary(file, pids);
  for (int i = 0; i < known; i++)
    if (kill(pids[i], 0) == 0) pids[alive++] = pids[i];
  pids[alive++] = getppid();
  qsort(pids, (size_t)alive, sizeof *pids, by_value);
  int done = is_text ? write_text(file, pids, alive) : written(file, pids, alive * (ssize_t)sizeof *pids);
  return done ? 0 : 1;
}
