/* The race at the limit for twenty times as long. */
#define ROUNDS 10000
#include "control_race.c"
