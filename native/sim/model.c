#include "model.h"

#include "clock.h"

/*
 * A holder that died half-way through a step leaves a model that is sound but for that step: an operation may have gone
 * on twice over it. Ends are written after what they promise, so nothing is lost and nothing runs twice as a whole.
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
