/* Events: an index into the machine's event table, where the model writes timestamps. */
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
  /* Recorded in a captured stream: the nodes that the next wait for the event depends on. */
  unsigned long long capture_id;
  struct CUgraphNode_st **captured;
  size_t captured_count;
  /* list of all events, so that events that the program does not destroy are freed at exit */
  struct CUevent_st *next, **previous;
};

CUresult event_check(CUevent event);

CUresult event_open(CUcontext context, unsigned int flags, CUevent *event);

/* Records the event in the stream, without capturing. */
CUresult event_record_in(CUstream stream, CUevent event);

/* Makes the stream, or its capture, wait for the last record of the event. */
CUresult event_wait_in(CUstream stream, CUevent event, unsigned int flags);

/* Opens an event of another process by its index in the table. */
CUresult event_open_foreign(uint32_t index, CUevent *event);

/* Reserves an entry of the event table for this process; -1: none is free. */
int event_take_row(void);
void event_give_row(uint32_t index);

#endif
