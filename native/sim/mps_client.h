/* The process as a client of MPS. */
#ifndef SIM_MPS_CLIENT_H
#define SIM_MPS_CLIENT_H

#include "driver.h"
#include "mps.h"

/* Connects to the daemon, if the process finds one: its devices are then those of its server. CUDA_ERROR_NOT_PERMITTED:
 * the daemon serves another user only. */
CUresult mps_client_connect(void);

/* Closes the connection in a child of the process. */
void mps_client_forget(void);

/* Makes a new context of a client one. */
void mps_client_join(CUcontext context);

/* SMs that kernels of the process may use on a GPU. */
uint32_t mps_client_sms(const struct sim_board *board);

#endif
