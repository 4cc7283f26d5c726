#include "kernel.h"
#include "module.h"
#include "mps_client.h"
#include "paging.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_THREADS = 1024,
  MAX_THREADS_OF_SM = 2048,
  MAX_BLOCKS_OF_SM = 32,
  MAX_GRID_YZ = 65535,
  MAX_SHARED = 96 * 1024,
};

/* Kernels with an unknown name take ten microseconds per block. */
static const uint64_t USUAL_BLOCK_US = 10;
static const uint64_t LONGEST_NS = 3600ull * 1000000000;

static bool skip_word(const char **at, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) return false;
  *at += length;
  return true;
}

/* Parses the rest of a name after the rule: "_us", an optional time such as "_250", and anything after "__". */
static bool read_time(struct CUfunc_st *function, const char *at) {
  if (skip_word(&at, "_ns"))
    function->unit_ns = 1;
  else if (skip_word(&at, "_us"))
    function->unit_ns = 1000;
  else if (skip_word(&at, "_ms"))
    function->unit_ns = 1000000;
  else
    return false;
  function->fixed = at[0] == '_' && isdigit((unsigned char)at[1]);
  if (function->fixed) {
    char *end;
    function->time = strtoull(at + 1, &end, 10);
    at = end;
  }
  return at[0] == 0 || strncmp(at, "__", 2) == 0;
}

static bool is_word(const char *name, const char *word) {
  return skip_word(&name, word) && (name[0] == 0 || strncmp(name, "__", 2) == 0);
}

void kernel_read_name(struct CUfunc_st *function, const char *name) {
  const char *at = name;
  function->fault = is_word(name, "illegal_address") ? CUDA_ERROR_ILLEGAL_ADDRESS
                    : is_word(name, "trap")          ? CUDA_ERROR_LAUNCH_FAILED
                                                     : CUDA_SUCCESS;
  if (skip_word(&at, "busy")) {
    function->law = KERNEL_GRID;
    if (read_time(function, at)) return;
  } else if (skip_word(&at, "touch")) {
    function->law = KERNEL_GRID;
    function->touches = true;
    if (read_time(function, at)) return;
    function->touches = false;
  } else if (skip_word(&at, "block")) {
    function->law = KERNEL_BLOCK;
    if (read_time(function, at)) return;
  }
  function->law = KERNEL_BLOCK;
  function->fixed = true;
  function->time = USUAL_BLOCK_US;
  function->unit_ns = 1000;
}

CUresult kernel_check(CUfunction function) {
  return function != NULL && function->magic == KERNEL_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

unsigned int kernel_blocks_per_sm(unsigned int threads) {
  unsigned int rounded = (threads + 31) / 32 * 32;
  if (rounded == 0) return 0;
  unsigned int blocks = MAX_THREADS_OF_SM / rounded;
  return blocks < MAX_BLOCKS_OF_SM ? blocks : MAX_BLOCKS_OF_SM;
}

/* The parameter at index `at`; it and those before it have 64 bits. False: not passed. */
static bool parameter(void **parameters, void **extra, size_t at, uint64_t *value) {
  if (parameters != NULL && parameters[at] != NULL) {
    memcpy(value, parameters[at], sizeof *value);
    return true;
  }
  for (size_t i = 0; extra != NULL && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] != CU_LAUNCH_PARAM_BUFFER_POINTER) continue;
    memcpy(value, (const char *)extra[i + 1] + at * sizeof *value, sizeof *value);
    return true;
  }
  return false;
}

static bool is_possible(const unsigned int grid[3], const unsigned int block[3], unsigned int shared) {
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  return grid[0] > 0 && grid[0] <= 0x7fffffff && grid[1] > 0 && grid[1] <= MAX_GRID_YZ && grid[2] > 0 &&
         grid[2] <= MAX_GRID_YZ && threads > 0 && block[0] <= MAX_THREADS && block[1] <= MAX_THREADS &&
         block[2] <= 64 && threads <= MAX_THREADS && shared <= MAX_SHARED;
}

CUresult kernel_prepare(struct kernel_launch *launch, CUcontext context, CUfunction function,
                        const unsigned int grid[3], const unsigned int block[3], unsigned int shared, void **parameters,
                        void **extra, bool cooperative) {
  TRY(kernel_check(function));
  CUcontext loaded_in = function->module->context;
  if (loaded_in != NULL && loaded_in != context) return CUDA_ERROR_INVALID_HANDLE;
  NEED(is_possible(grid, block, shared));
  NEED(parameters == NULL || extra == NULL);
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], sms = context->board->model.sms;
  if (cooperative &&
      blocks > (uint64_t)mps_client_sms(context->board) * kernel_blocks_per_sm(block[0] * block[1] * block[2]))
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  uint64_t time = function->time;
  launch->value = 0;
  if (!function->fixed) {
    NEED(parameter(parameters, extra, 0, &launch->value));
    time = launch->value;
  }
  uint64_t paging_ns = 0;
  if (function->touches) {
    uint64_t address, bytes;
    size_t at = function->fixed ? 0 : 1;
    NEED(parameter(parameters, extra, at, &address) && parameter(parameters, extra, at + 1, &bytes));
    paging_ns = paging_time(address, bytes);
    if (paging_ns > LONGEST_NS) paging_ns = LONGEST_NS;
  }
  time = time > LONGEST_NS / function->unit_ns ? LONGEST_NS : time * function->unit_ns;
  uint64_t width = blocks < sms ? blocks : sms;
  uint64_t waves = function->law == KERNEL_BLOCK ? (blocks + sms - 1) / sms : 1;
  launch->function = function;
  memcpy(launch->grid, grid, sizeof launch->grid);
  memcpy(launch->block, block, sizeof launch->block);
  launch->shared = shared;
  launch->width = (uint32_t)width;
  launch->work = time * waves > LONGEST_NS - paging_ns ? LONGEST_NS * width : (time * waves + paging_ns) * width;
  launch->flags = (uint16_t)((cooperative ? SIM_GANG : 0) | (function->fault != CUDA_SUCCESS ? SIM_FAULT : 0));
  return CUDA_SUCCESS;
}

void kernel_push(CUstream stream, const struct kernel_launch *launch) {
  const struct sim_node *node = &driver.machine->node;
  if (node->launch_ns > 0) sim_clock_spend(driver.machine, node->launch_ns);
  struct sim_op op = {.kind = SIM_KERNEL,
                      .flags = launch->flags,
                      .width = launch->width,
                      .work = launch->work + node->kernel_gap_ns * launch->width,
                      .ticket = (uint64_t)launch->function->fault};
  stream_push(stream, &op);
}
