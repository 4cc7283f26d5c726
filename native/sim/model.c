#include "model.h"

#include "clock.h"

/*
 * If a holder died in the middle of a step, an operation may have progressed twice over that step. The model is
 * otherwise consistent: the end of an operation is written last, so no operation is lost or executed twice as a whole.
 */
void sim_model_enter(struct sim_machine *machine, uint32_t gpu) {
  struct sim_board *board = &machine->boards[gpu];
  sim_lock_take(&board->lock);
  sim_model_advance(&board->model, machine->events, sim_now(machine));
}

void sim_model_leave(struct sim_machine *machine, uint32_t gpu) {
  sim_lock_give(&machine->boards[gpu].lock);
}

void sim_model_touch(struct sim_machine *machine, uint32_t gpu) {
  struct sim_board *board = &machine->boards[gpu];
  bool sound;
  if (!sim_lock_try(&board->lock, &sound)) return;
  sim_model_advance(&board->model, machine->events, sim_now(machine));
  sim_lock_give(&board->lock);
}
