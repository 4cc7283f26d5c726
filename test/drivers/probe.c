/*
 * Asks a driver library on a machine without a GPU. Names come from standard input, one a line.
 *   probe names LIBRARY    the names that dlsym finds, with the offset of each in the driver's file
 *   probe lookups LIBRARY  what cuGetProcAddress answers for each name, version and flag
 *   probe calls LIBRARY    what each function returns that gets zeroed memory as its arguments
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*lookup)(const char *, void **, int, unsigned long long);
typedef int (*lookup_v2)(const char *, void **, int, unsigned long long, int *);
typedef int (*any_call)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

static const int versions[] = {2000,  3020,  4000,  5000,  6050,  7000,  8000,  9000,  10000,
                               11000, 11030, 11040, 11070, 12000, 12020, 12040, 12050, 13000};

static void *library, *origin, *driver_base;
static char names[8192][128];
static int name_count;

static long offset_of(void *function) {
  Dl_info from;
  return function != NULL && dladdr(function, &from) != 0 && from.dli_fbase == driver_base
             ? (char *)function - (char *)driver_base
             : -1;
}

/* The library itself, or the driver's library behind a control library. */
static int open_library(const char *path) {
  static const char *const origins[] = {"libcuda-origin.so.1", "libnvidia-ml-origin.so.1"};
  static const char *const first_calls[] = {"cuInit", "nvmlInit"};
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 0;
  for (int i = 0; i < 2; i++) {
    void *behind = dlopen(origins[i], RTLD_NOW | RTLD_NOLOAD);
    Dl_info from;
    void *first = dlsym(behind == NULL ? library : behind, first_calls[i]);
    if (first == NULL || dladdr(first, &from) == 0) continue;
    origin = behind == NULL ? library : behind;
    driver_base = from.dli_fbase;
    return 1;
  }
  return fprintf(stderr, "%s has neither cuInit nor nvmlInit\n", path), 0;
}

static void print_names(void) {
  for (int i = 0; i < name_count; i++)
    if (dlsym(library, names[i]) != NULL) printf("%s %ld\n", names[i], offset_of(dlsym(origin, names[i])));
}

static void print_lookups(void) {
  lookup first = (lookup)dlsym(library, "cuGetProcAddress");
  lookup_v2 second = (lookup_v2)dlsym(library, "cuGetProcAddress_v2");
  if (first == NULL && second == NULL) return;
  for (int i = 0; i < name_count; i++)
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
      for (int flags = 0; flags < 3; flags++) {
        void *function = NULL;
        int status = 0;
        int answer = second != NULL ? second(names[i], &function, versions[v], flags, &status)
                                    : first(names[i], &function, versions[v], flags);
        printf("%s %d %d: %d,%d ", names[i], versions[v], flags, answer, status);
        Dl_info from;
        if (function == NULL || dladdr(function, &from) == 0)
          puts("nothing");
        else if (from.dli_fbase == driver_base)
          printf("driver %ld\n", offset_of(function));
        else
          printf("hook %ld\n", from.dli_saddr == function ? offset_of(dlsym(origin, from.dli_sname)) : -1);
      }
}

static void print_calls(void) {
  static char memory[10][65536];
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
  if (init != NULL) printf("cuInit first: %d\n", init(0));
  for (int i = 0; i < name_count; i++) {
    any_call call = (any_call)dlsym(library, names[i]);
    if (call == NULL) continue;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(5);
      int answer = call(memory[0], memory[1], memory[2], memory[3], memory[4], memory[5], memory[6], memory[7],
                        memory[8], memory[9]);
      printf("%s %d\n", names[i], answer);
      fflush(stdout);
      _exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(3);
    if (WIFSIGNALED(status)) printf("%s ends with signal %d\n", names[i], WTERMSIG(status));
  }
}

/* A function may take the address of the memory for a number, and its answer then depends on that: every run has the
 * same addresses. */
static void fix_addresses(char **argv) {
  int before = personality(0xffffffff);
  if (before < 0 || (before & ADDR_NO_RANDOMIZE) != 0) return;
  if (personality((unsigned long)before | ADDR_NO_RANDOMIZE) >= 0) execv(argv[0], argv);
}

int main(int argc, char **argv) {
  fix_addresses(argv);
  if (argc != 3 || !open_library(argv[2])) return 2;
  while (name_count < 8192 && scanf("%127s", names[name_count]) == 1)
    name_count++;
  if (strcmp(argv[1], "names") == 0)
    print_names();
  else if (strcmp(argv[1], "lookups") == 0)
    print_lookups();
  else
    print_calls();
  return 0;
}
