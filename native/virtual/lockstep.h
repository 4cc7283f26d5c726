/* What the programs in one virtual time share: the file LOCKSTEP_FILE. See lockstep.c. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stdatomic.h>
#include <stdint.h>

enum { LOCKSTEP_MOST = 64 };

struct lockstep {
  _Atomic uint32_t turn; /* futex: 1 + the program that runs; 0: not all have joined */
  _Atomic uint32_t joined;
  struct {
    _Atomic uint32_t pid; /* 0: it has ended */
    _Atomic uint64_t at_ns;
  } programs[LOCKSTEP_MOST];
};

#endif
