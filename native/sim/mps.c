#include "mps.h"

#include "liveness.h"
#include "model.h"

uint32_t sim_mps_sms(uint32_t sms, uint32_t percentage) {
  uint32_t part = (uint32_t)((uint64_t)sms * percentage / 100) & ~1u;
  if (percentage >= 100) return sms;
  return part < 2 ? 2 : part;
}

int sim_mps_process(struct sim_machine *machine, uint32_t pid) {
  for (int i = 0; i < SIM_MAX_PROCESSES; i++) {
    const struct sim_process *process = &machine->processes[i];
    if (atomic_load(&process->pid) != 0 && process->driver && sim_process_number(process) == pid) return i;
  }
  return -1;
}

void sim_mps_end_client(struct sim_machine *machine, uint32_t process, uint32_t error) {
  for (uint32_t i = 0; i < machine->node.boards; i++) {
    struct sim_model *model = &machine->boards[i].model;
    sim_model_enter(machine, i);
    for (uint32_t t = 0; t < SIM_MAX_TENANTS; t++)
      if (atomic_load(&model->tenants[t].used) && model->tenants[t].process == process)
        sim_model_fail(model, machine->events, t, error, false);
    sim_model_leave(machine, i);
  }
}

void sim_mps_lost(struct sim_machine *machine, uint32_t process) {
  uint32_t daemon = process + 1;
  bool was_daemon = atomic_compare_exchange_strong(&machine->mps_daemon, &daemon, 0);
  for (uint32_t i = 0; i < machine->node.boards; i++) {
    struct sim_model *model = &machine->boards[i].model;
    sim_model_enter(machine, i);
    for (uint32_t t = 0; t < SIM_MAX_TENANTS; t++) {
      const struct sim_tenant *tenant = &model->tenants[t];
      if (!atomic_load(&tenant->used) || tenant->client.server == 0) continue;
      if (was_daemon)
        sim_model_fail(model, machine->events, t, SIM_MPS_RPC_FAILURE, false);
      else if (tenant->process == process && sim_model_works(model, t))
        sim_model_fail(model, machine->events, t, SIM_MPS_ILLEGAL_ADDRESS, true);
    }
    sim_model_leave(machine, i);
  }
}
