/*
 * Events: an index into the machine's table, where the model stamps them.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "stream.h"

struct CUgraphNode_st;

struct CUevent_st {
  uint32_t magic;
  uint32_t index;
  CUcontext context;
  unsigned int flags;
  bool foreign; /* opened from another process */
  pthread_mutex_t lock;
  /* Recorded in a stream that was captured: what the next wait for it depends on. */
  unsigned long long capture_id;
  struct CUgraphNode_st **captured;
  size_t captured_count;
  struct CUevent_st *next, **previous; /* of all events: none is lost that a program forgets */
};

CUresult event_check(CUevent event);

/* Puts a record of the event into the stream (past any capture). */
CUresult event_record_in(CUstream stream, CUevent event);

/* Lets the stream, or its capture, wait for the last record of the event. */
CUresult event_wait_in(CUstream stream, CUevent event, unsigned int flags);

/* An event of another process, by its row. */
CUresult event_open_foreign(uint32_t index, CUevent *event);

/* A row of the machine's table for this process; -1: none is free. */
int event_take_row(void);
void event_give_row(uint32_t index);

#endif
