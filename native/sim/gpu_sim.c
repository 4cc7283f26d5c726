/* gpu-sim: prints the simulated machine and injects faults and events. */
#include "clock.h"
#include "fault.h"
#include "ledger.h"
#include "liveness.h"
#include "mig.h"
#include "model.h"
#include "process.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: gpu-sim COMMAND\n"
    "  status                                what there is, one JSON object a line\n"
    "  fault CALL CODE [--gpu N] [--times N] CALL returns CODE; CALL* stands for all that begin so\n"
    "  clear [CALL]                          takes back faults\n"
    "  xid GPU NUMBER                        reports an XID to NVML's listeners\n"
    "  ecc GPU corrected|uncorrected COUNT   adds memory errors\n"
    "  lose GPU                              the GPU falls off the bus (with XID 79)\n"
    "  restore GPU                           it comes back\n"
    "  advance-clock TIME                    moves a manual clock: 5us, 10ms, 2s, or nanoseconds\n"
    "CODE is a number, or: not-supported unknown lost out-of-memory no-permission not-found timeout\n";

enum { DONE = 0, FAILED = 1, MISUSED = 2 };

static const uint64_t XID_EVENT = 8, SINGLE_BIT_ECC = 1, DOUBLE_BIT_ECC = 2, FALLEN_OFF_THE_BUS = 79;

static int misuse(const char *why) {
  fprintf(stderr, "gpu-sim: %s\n%s", why, USAGE);
  return MISUSED;
}

static bool number(const char *text, uint64_t *value) {
  char *end;
  if (text == NULL || *text == 0) return false;
  errno = 0;
  *value = strtoull(text, &end, 0);
  return *end == 0 && errno == 0;
}

/* "0" is a GPU, "0/7" is its MIG instance with GPU instance id 7. */
static bool gpu_of(const struct sim_machine *machine, const char *text, uint32_t *gpu) {
  uint64_t value, instance;
  char index[24];
  size_t length = text == NULL ? 0 : strcspn(text, "/");
  if (length == 0 || length >= sizeof index) return false;
  memcpy(index, text, length);
  index[length] = 0;
  if (!number(index, &value) || value >= machine->node.count) return false;
  *gpu = (uint32_t)value;
  if (text[length] == 0) return true;
  int board = number(text + length + 1, &instance) ? sim_mig_board(&machine->node, *gpu, (uint32_t)instance) : -1;
  if (board < 0) return false;
  *gpu = (uint32_t)board;
  return true;
}

/* Calls `act` for a GPU and its instances. */
static void each_board(struct sim_machine *machine, uint32_t gpu, void (*act)(struct sim_machine *, uint32_t)) {
  act(machine, gpu);
  for (uint32_t i = machine->node.count; i < machine->node.boards; i++)
    if (machine->node.gpus[i].parent == (int32_t)gpu) act(machine, i);
}

/* The same word has different error numbers in CUDA and NVML. */
static bool code_of(const char *call, const char *text, uint32_t *code) {
  static const struct {
    const char *word;
    uint32_t cuda, nvml;
  } words[] = {{"not-supported", 801, 3}, {"unknown", 999, 999}, {"lost", 999, 15},   {"out-of-memory", 2, 20},
               {"no-permission", 800, 4}, {"not-found", 500, 6}, {"timeout", 909, 10}};
  uint64_t value;
  if (number(text, &value)) {
    *code = (uint32_t)value;
    return true;
  }
  for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++) {
    if (strcmp(words[i].word, text) != 0) continue;
    *code = strncmp(call, "nvml", 4) == 0 ? words[i].nvml : words[i].cuda;
    return true;
  }
  return false;
}

/* Prints a JSON string. Control characters do not occur. */
static void print_text(const char *text) {
  putchar('"');
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') putchar('\\');
    putchar(*text);
  }
  putchar('"');
}

/* Time in which kernels of a process ran. `busyNs`, as in NVML, also includes switches to the process. */
static uint64_t work_of(const struct sim_machine *machine, uint32_t gpu, uint32_t process) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < SIM_MAX_TENANTS; i++) {
    const struct sim_tenant *tenant = &machine->boards[gpu].model.tenants[i];
    if (atomic_load(&tenant->used) && tenant->process == process) work += tenant->busy_ns;
  }
  return work;
}

static void print_processes(struct sim_machine *machine) {
  for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &machine->processes[i];
    uint32_t pid = atomic_load(&process->pid) == 0 ? 0 : sim_process_number(process);
    for (uint32_t gpu = 0; pid != 0 && gpu < machine->node.boards; gpu++) {
      if (atomic_load(&process->contexts[gpu]) == 0) continue;
      printf("{\"process\":%u,\"gpu\":%u,\"contexts\":%u,\"memoryBytes\":%llu,\"hostBytes\":%llu,"
             "\"state\":%u,\"busyNs\":%llu,\"workNs\":%llu}\n",
             pid, gpu, atomic_load(&process->contexts[gpu]), (unsigned long long)sim_ledger_of(machine, i, gpu),
             (unsigned long long)atomic_load(&process->host[gpu]), atomic_load(&process->state),
             (unsigned long long)machine->boards[gpu].model.usage.process[i].busy_ns,
             (unsigned long long)work_of(machine, gpu, i));
    }
  }
}

static int status(struct sim_machine *machine) {
  static const char *const clocks[] = {"real", "manual", "jump"};
  sim_process_sweep(machine, true);
  printf("{\"driverVersion\":\"%s\",\"cudaVersion\":%d,\"clock\":\"%s\",\"nowNs\":%llu,\"faults\":%u}\n",
         machine->node.driver_version, machine->node.cuda_version, clocks[machine->clock],
         (unsigned long long)sim_now(machine), atomic_load(&machine->fault_count));
  for (uint32_t i = 0; i < machine->node.boards; i++) {
    if (machine->node.gpus[i].parent == SIM_NO_BOARD) continue;
    sim_model_enter(machine, i);
    const struct sim_board *board = &machine->boards[i];
    printf("{\"gpu\":%u,\"uuid\":", i);
    print_text(machine->node.gpus[i].uuid);
    printf(",\"model\":");
    print_text(machine->node.gpus[i].model);
    printf(",\"memoryBytes\":%llu,\"usedBytes\":%llu,\"lost\":%s,\"busyNs\":%llu,\"switches\":%llu}\n",
           (unsigned long long)machine->node.gpus[i].memory_bytes, (unsigned long long)sim_ledger_used(machine, i),
           atomic_load(&board->lost) ? "true" : "false", (unsigned long long)board->model.usage.total_busy_ns,
           (unsigned long long)board->model.switches);
    sim_model_leave(machine, i);
  }
  print_processes(machine);
  return DONE;
}

static int fault(struct sim_machine *machine, int count, char **arguments) {
  static const struct option options[] = {
      {"gpu", required_argument, NULL, 'g'}, {"times", required_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
  uint32_t named, code;
  uint64_t times = 0;
  int gpu = -1, option;
  optind = 1;
  while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
    if (option == 'g' && gpu_of(machine, optarg, &named))
      gpu = (int)named;
    else if (option != 't' || !number(optarg, &times) || times == 0)
      return misuse("--gpu and --times take numbers");
  }
  if (count - optind != 2) return misuse("fault takes a call and a code");
  const char *call = arguments[optind];
  if (!code_of(call, arguments[optind + 1], &code) || code == 0) return misuse("that is no code");
  if (!sim_fault_set(machine, call, gpu, code, times == 0 ? -1 : (int64_t)times)) return misuse("too many faults");
  return DONE;
}

static int ecc(struct sim_machine *machine, uint32_t gpu, const char *kind, const char *text) {
  uint64_t errors;
  bool uncorrected = strcmp(kind, "uncorrected") == 0;
  if (!uncorrected && strcmp(kind, "corrected") != 0) return misuse("corrected or uncorrected?");
  if (!number(text, &errors)) return misuse("how many errors?");
  atomic_fetch_add(&machine->boards[gpu].ecc[uncorrected][0], errors);
  atomic_fetch_add(&machine->boards[gpu].ecc[uncorrected][1], errors);
  sim_nvml_event_publish(machine, gpu, uncorrected ? DOUBLE_BIT_ECC : SINGLE_BIT_ECC, errors);
  return DONE;
}

static int advance(struct sim_machine *machine, const char *text) {
  char *end = NULL;
  unsigned long long value = strtoull(text, &end, 10);
  static const struct {
    const char *unit;
    uint64_t ns;
  } units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  if (machine->clock != SIM_CLOCK_MANUAL) return misuse("the clock of this machine is not manual");
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (end == text || strcmp(end, units[i].unit) != 0) continue;
    sim_clock_advance(machine, value * units[i].ns);
    for (uint32_t gpu = 0; gpu < machine->node.boards; gpu++)
      sim_model_touch(machine, gpu);
    return DONE;
  }
  return misuse("how much time?");
}

static int on_gpu(struct sim_machine *machine, char **arguments) {
  const char *command = arguments[0];
  uint32_t gpu;
  uint64_t value;
  if (!gpu_of(machine, arguments[1], &gpu)) return misuse("which GPU?");
  if (strcmp(command, "ecc") == 0) return ecc(machine, gpu, arguments[2], arguments[3]);
  if (strcmp(command, "lose") == 0) {
    sim_nvml_event_publish(machine, gpu, XID_EVENT, FALLEN_OFF_THE_BUS);
    each_board(machine, gpu, sim_model_lose);
  } else if (strcmp(command, "restore") == 0) {
    each_board(machine, gpu, sim_model_restore);
  } else {
    if (!number(arguments[2], &value)) return misuse("which XID?");
    sim_nvml_event_publish(machine, gpu, XID_EVENT, value);
  }
  return DONE;
}

/* `count` arguments starting with the command; `arguments` ends with NULL. */
static int execute(struct sim_machine *machine, int count, char **arguments) {
  static const struct {
    const char *command;
    int least, most;
  } commands[] = {{"status", 1, 1}, {"fault", 3, 7}, {"clear", 1, 2}, {"advance-clock", 2, 2},
                  {"xid", 3, 3},    {"ecc", 4, 4},   {"lose", 2, 2},  {"restore", 2, 2}};
  size_t at = 0, all = sizeof commands / sizeof commands[0];
  while (at < all && strcmp(arguments[0], commands[at].command) != 0)
    at++;
  if (at == all) return misuse("there is no such command");
  if (count < commands[at].least || count > commands[at].most) return misuse("too few arguments, or too many");
  switch (at) {
  case 0:
    return status(machine);
  case 1:
    return fault(machine, count, arguments);
  case 2:
    sim_fault_clear(machine, arguments[1]);
    return DONE;
  case 3:
    return advance(machine, arguments[1]);
  default:
    return on_gpu(machine, arguments);
  }
}

int main(int count, char **arguments) {
  char why[512];
  if (count < 2) return misuse("what shall happen?");
  struct sim_machine *machine = sim_machine_open(why, sizeof why);
  if (machine == NULL) {
    fprintf(stderr, "gpu-sim: %s\n", why);
    return FAILED;
  }
  return execute(machine, count - 1, arguments + 1);
}
