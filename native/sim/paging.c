#include "paging.h"

#include "memory.h"

static uint64_t blocks(uint64_t bytes) {
  return (bytes + PAGING_BLOCK - 1) / PAGING_BLOCK;
}

uint64_t paging_time(CUdeviceptr address, uint64_t bytes) {
  struct allocation *allocation = memory_find(address);
  if (allocation == NULL || allocation->kind != MEMORY_MANAGED || allocation->charged > 0) return 0;
  uint64_t from = address - allocation->base;
  uint64_t room = allocation->size - from;
  if (bytes > room) bytes = room;
  uint64_t faults = blocks(bytes);
  if (allocation->managed.mapped) {
    uint64_t before = allocation->managed.touched;
    uint64_t end = from + bytes;
    faults = end > before ? blocks(end - (from > before ? from : before)) : 0;
    if (end > before) allocation->managed.touched = end;
  }
  return bytes * 1000 / PAGING_BYTES_PER_US + faults * PAGING_FAULT_NS;
}
