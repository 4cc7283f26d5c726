/* The process as a client of MPS. */
#ifndef SIM_MPS_CLIENT_H
#define SIM_MPS_CLIENT_H

#include "driver.h"
#include "mps.h"

/* Connects to the daemon, if the process finds one, and keeps those of the GPUs that its server has.
 * CUDA_ERROR_NOT_PERMITTED: the daemon serves another user only. */
CUresult mps_client_connect(uint32_t *gpus, uint32_t *count);

/* Closes the connection in a child of the process. */
void mps_client_forget(void);

/* The process ends by itself: its work ends, and its neighbours go on. */
void mps_client_leave(struct sim_machine *machine, uint32_t process);

/* Makes a new context of a client one. */
void mps_client_join(CUcontext context);

/* SMs that kernels of the process may use on a GPU. */
uint32_t mps_client_sms(const struct sim_board *board);

#endif
