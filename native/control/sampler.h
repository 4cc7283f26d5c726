/* Times launches with driver events to learn their cost. The sampler never records events on a stream that is being
 * captured and never waits for the GPU. The next launch that calls sampler_collect applies finished samples. */
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
  bool guessed;            /* charged an assumed cost: the difference is charged once the cost is known */
  uint64_t alone_until_ns; /* when the launch would end on an otherwise idle GPU; 0: lateness is not measured */
};

/* Called before the launch. NULL when the launch cannot be timed. */
struct sample *sampler_begin(const struct sample_request *request);

/* Called directly before the launch call, and after it. */
void sampler_launching(struct sample *sample);
void sampler_end(struct sample *sample, CUstream stream, bool launched);

/* Applies all finished samples. Takes some microseconds, so call it preferably while the thread waits anyway. */
void sampler_collect(void);

/* Calls sampler_collect between launches, except during a timing window: the extra microseconds would change how
 * launches overlap. */
void sampler_collect_if_due(void);

/* Whether every launch must be timed now, to measure how launches of several streams overlap. */
bool sampler_times_every_launch(void);

/* Records which stream a launch uses. */
void sampler_note_launch(uint32_t device, CUstream stream);

/* GPU time that launches with a total cost of `cost_ns` use while several streams are busy at once. */
uint64_t sampler_overlapped(uint32_t device, uint64_t cost_ns);

/* Releases the events of a context that is about to be destroyed. */
void sampler_drop_context(CUcontext context);

#endif
