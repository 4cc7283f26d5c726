/* Common to tests that use only the time model: a GPU without a driver, its tenants (contexts) and their kernels. */
#ifndef TEST_MODEL_BENCH_H
#define TEST_MODEL_BENCH_H

#include "../sim/time_model.h"
#include "tap.h"

#include <stdlib.h>

static const uint64_t US = 1000, MS = 1000000, SECOND = 1000000000;

struct bench {
  struct sim_model *gpu;
  struct sim_event *events;
};

__attribute__((unused)) static struct bench bench_open(uint32_t sms, uint64_t slice_ns, uint64_t switch_ns) {
  struct bench bench = {calloc(1, sizeof(struct sim_model)), calloc(64, sizeof(struct sim_event))};
  REQUIRE(bench.gpu != NULL && bench.events != NULL);
  const struct sim_pace pace = {.slice_ns = slice_ns, .switch_ns = switch_ns, .idle_switch_ns = switch_ns};
  sim_model_begin(bench.gpu, 0, sms, &pace, 0);
  return bench;
}

__attribute__((unused)) static void bench_close(struct bench *bench) {
  free(bench->gpu);
  free(bench->events);
}

__attribute__((unused)) static void advance(struct bench *bench, uint64_t to_ns) {
  sim_model_advance(bench->gpu, bench->events, to_ns);
}

__attribute__((unused)) static uint32_t tenant(struct bench *bench, uint32_t process) {
  int index = sim_model_open_tenant(bench->gpu, process);
  REQUIRE(index >= 0);
  return (uint32_t)index;
}

__attribute__((unused)) static uint32_t channel(struct bench *bench, uint32_t of_tenant, uint32_t flags,
                                                int32_t priority) {
  int index = sim_model_open_channel(bench->gpu, of_tenant, flags, priority);
  REQUIRE(index >= 0);
  return (uint32_t)index;
}

/* A kernel on `width` SMs that takes `duration_ns` if it gets all of them. */
__attribute__((unused)) static uint64_t kernel(struct bench *bench, uint32_t to, uint32_t width, uint64_t duration_ns,
                                               uint64_t at_ns) {
  struct sim_op op = {.kind = SIM_KERNEL, .width = width, .work = width * duration_ns, .submitted_ns = at_ns};
  return sim_model_push(bench->gpu, to, &op);
}

__attribute__((unused)) static uint64_t push(struct bench *bench, uint32_t to, enum sim_kind kind, uint32_t what,
                                             uint64_t ticket, uint64_t at_ns) {
  struct sim_op op = {.kind = (uint16_t)kind, .event = what, .ticket = ticket, .submitted_ns = at_ns};
  return sim_model_push(bench->gpu, to, &op);
}

/* Records event `event` for the first time. */
__attribute__((unused)) static void mark(struct bench *bench, uint32_t to, uint32_t event, uint64_t at_ns) {
  push(bench, to, SIM_RECORD, event, 1, at_ns);
}

__attribute__((unused)) static uint64_t time_of(struct bench *bench, uint32_t event) {
  return atomic_load(&bench->events[event].reached) == 0 ? SIM_NEVER : atomic_load(&bench->events[event].time_ns);
}

__attribute__((unused)) static uint64_t done_of(struct bench *bench, uint32_t of_channel) {
  return atomic_load(&bench->gpu->channels[of_channel].done);
}

#endif
