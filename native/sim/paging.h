/*
 * The time that memory on the host costs a kernel that touches it: the transfer over PCIe and page faults. The figures
 * are published values for GPUs of the A100's generation:
 *
 * - 25 GB/s: PCIe 4.0 x16 moves 16 GT/s x 16 lanes x 128/130, 31.5 GB/s (PCI Express Base Specification 4.0), minus
 * about a fifth for the headers of packets with 128 bytes of data.
 * - 50 us per fault: a GPU page fault that the driver on the host handles takes 20 to 50 us (Zheng, Nellans, Zulfiqar,
 *   Stephenson, Keckler: Towards High Performance Paged Memory for GPUs, HPCA 2016). The upper bound is used, because a
 *   driver handles faults one batch at a time.
 * - 2 MiB: the driver of unified memory handles faults in blocks of this size.
 */
#ifndef SIM_PAGING_H
#define SIM_PAGING_H

#include "cuda_abi.h"
#include <stdint.h>

enum {
  PAGING_BYTES_PER_US = 25000,
  PAGING_FAULT_NS = 50000,
  PAGING_BLOCK = 2 << 20,
};

/* How long a kernel waits for the part of a range that is on the host. Memory mapped by the GPU faults at the first
 * touch only. Other managed memory faults at every touch: it does not fit on the GPU, so it was evicted in between. */
uint64_t paging_time(CUdeviceptr address, uint64_t bytes);

#endif
