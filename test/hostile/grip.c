/*
 * What root in a container can hold a file by, until standard input ends:
 *
 *     grip lease PATH    a lease for reading, on a descriptor that can only read
 *     grip own PATH      a lease for writing, where nobody else has the file open
 *     grip fill PATH     blocks behind the end of the file, its size unchanged; once
 *     grip grow PATH     a file of 64 MiB; once
 *     grip wait          nothing: to be copied over a file and run from there
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int hold(const char *what) {
  char byte;
  puts(what);
  fflush(stdout);
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "wait") == 0) return hold("held");
  if (count != 3) return 2;
  signal(SIGIO, SIG_IGN);
  int fills = strcmp(arguments[1], "fill") == 0, grows = strcmp(arguments[1], "grow") == 0;
  int fd = open(arguments[2], fills || grows ? O_RDWR : O_RDONLY);
  if (fd < 0) return hold("cannot open");
  if (fills) return hold(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 64 << 20) == 0 ? "held" : "refused");
  if (grows) return hold(fallocate(fd, 0, 0, 64 << 20) == 0 ? "held" : "refused");
  return hold(fcntl(fd, F_SETLEASE, strcmp(arguments[1], "own") == 0 ? F_WRLCK : F_RDLCK) == 0 ? "held" : "refused");
}
