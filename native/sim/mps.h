/*
 * MPS, version 3. The control daemon (mps_control.c) keeps servers and namespaces. A program becomes a client in
 * cuInit, through the socket `control` in the folder that CUDA_MPS_PIPE_DIRECTORY names (mps_client.c). Without such a
 * socket it runs as any other program, and is told nothing, as with the real driver.
 */
#ifndef SIM_MPS_H
#define SIM_MPS_H

#include "machine.h"

/* Errors of clients, with CUDA's numbers. */
enum { SIM_MPS_ILLEGAL_ADDRESS = 700, SIM_MPS_RPC_FAILURE = 806, SIM_MPS_CLIENT_TERMINATED = 810 };

/* Where the daemon put a client; it answers with these numbers in one line. */
struct sim_mps_place {
  uint32_t server; /* from 1 */
  uint32_t together;
  uint32_t percentage; /* of the SMs of each GPU, for each client */
  uint32_t priority;
  uint32_t gpus; /* bit per GPU that its server has */
};

/* SMs of a percentage, rounded down to pairs; at least one pair. */
uint32_t sim_mps_sms(uint32_t sms, uint32_t percentage);

/* The number of a process's row, by its pid in the caller's pid namespace; -1: it does not use the machine. */
int sim_mps_process(struct sim_machine *machine, uint32_t pid);

/* Ends the contexts of a client, with their work; its neighbours go on. */
void sim_mps_end_client(struct sim_machine *machine, uint32_t process, uint32_t error);

/* A process died. A client that dies with work on a GPU takes the other clients of its server there with it, and the
 * daemon takes all clients with it. */
void sim_mps_lost(struct sim_machine *machine, uint32_t process);

#endif
