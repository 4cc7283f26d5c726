/*
 * Times launches with events of the driver, to learn what they cost. Never on a stream that is being captured, never by
 * waiting for the GPU; what is found is applied by whichever launch looks next.
 */
#ifndef VGPU_SAMPLER_H
#define VGPU_SAMPLER_H

#include "cost.h"
#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

struct sample;

struct sample_request {
  uint32_t device;
  CUcontext context;
  CUstream stream;
  struct cost *cost;
  uint64_t charged_ns;
  bool guessed;            /* charged by guess: the difference is charged when the time is known */
  uint64_t alone_until_ns; /* when it would be done if nobody else used the GPU; 0: not asked */
};

/* Before the launch; NULL when it cannot be timed. */
struct sample *sampler_begin(const struct sample_request *request);

/* Right before the launch call, and after it. */
void sampler_launching(struct sample *sample);
void sampler_end(struct sample *sample, CUstream stream, bool launched);

/* Applies what is known by now: takes some microseconds, best while one waits anyway. */
void sampler_harvest(void);

/* The same between launches, unless they are watched and every microsecond shows in how they overlap. */
void sampler_keep_up(void);

/* Every launch is to be timed now, to see how launches of several streams overlap. */
bool sampler_watches(void);

/* Notes which streams are in use. */
void sampler_saw(uint32_t device, CUstream stream);

/* What `cost_ns` of launches really take of the GPU while several streams are busy at once. */
uint64_t sampler_overlapped(uint32_t device, uint64_t cost_ns);

/* A context is about to end, and its events with it. */
void sampler_drop_context(CUcontext context);

#endif
