/*
 * What this process passed to the GPU and may be incomplete, in spans: the launches of one stream between two events.
 * The events tell when they were complete and how long they took, whatever their kernels did, so what they took beyond
 * their charge is charged afterwards. The process's entry in the usage file says since when work may be incomplete, for
 * the process that finds this one dead.
 */
#ifndef VGPU_FLIGHT_H
#define VGPU_FLIGHT_H

#include "cuda_abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Begins a launch of this thread, whose unused tokens are in `*credit_ns`. */
void flight_enter(uint32_t device, const int64_t *credit_ns);

/* Adds launches for which `gpu_ns` of tokens were taken, just before they are passed to the driver. `unknown`: that is
 * a guess. `timed`: events may be recorded. */
void flight_add(uint32_t device, CUstream stream, uint64_t gpu_ns, bool unknown, bool timed);

/* Whether that recorded an event on a stream that was idle. */
bool flight_recorded_on_idle(void);

/* Called before this thread waits for something else than the GPU: ends the span. */
void flight_pause(uint32_t device);

/* Called while this thread waits until some launches are complete, with the time that it waited since the last call:
 * ends the span if it is the only one. */
void flight_part(uint32_t device, uint64_t waited_ns);

/* Called around a wait of the program for the GPU. `alone`: one bit for each device on which nothing else ran. */
void flight_wait(void);
void flight_waited(uint32_t alone);

/* Whether all launches are known to be complete, and the next one takes the slow path for this reason. */
bool flight_is_over(void);

/* Whether launches may be incomplete; queries the driver. */
bool flight_runs(uint32_t device);

/* How many launches of unknown cost are incomplete, and since when the first of them is. */
struct flight_unknown {
  uint32_t count;
  uint64_t since_ns;
};
struct flight_unknown flight_unknown(uint32_t device);

/* What else ran while the launches did. */
struct flight_beside {
  uint32_t own_ppm; /* the part of the GPU that the launches had at least; all of it: nothing else ran */
  bool in_turn;     /* nothing else was allowed to run, so pauses of the program are its time as well */
};

/* Notes which spans are complete. Returns what these took beyond their charge, or did not take (negative), that is not
 * settled yet. */
int64_t flight_collect(uint32_t device, struct flight_beside beside);

/* Charged and not complete, as far as the last call of flight_collect knows; `runs_alone`: the GPU has worked on it
 * since. FLIGHT_LATE: then more should be complete, or there is no room for more. */
#define FLIGHT_LATE UINT64_MAX
uint64_t flight_incomplete_ns(uint32_t device, bool runs_alone);

/* How much GPU time may be submitted and incomplete. */
uint64_t flight_room_ns(uint32_t device);

/* By how much the program waited for launches longer than predicted, at most, in the last few seconds. */
uint64_t flight_surprise_ns(uint32_t device);

/* A guessed launch of this time took `more_ns` beyond its charge. True: that is settled with its span. */
bool flight_settles(uint32_t device, uint64_t launched_at_ns, int64_t more_ns);

/* The launches so far run beside others from now on. */
void flight_disturb(uint32_t device);

/* Forget a stream or a context that is about to be destroyed. The latter returns what its launches on `device` took
 * beyond their charge until now. */
void flight_drop_stream(CUstream stream);
int64_t flight_drop_context(uint32_t device, CUcontext context);

#endif
