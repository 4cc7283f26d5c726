/*
 * The part of NVML's binary interface for memory limits of control groups, which headers of CUDA 13.4 and later
 * declare. test/abi_nvml_limits.sh compares it with such a header; nvml_abi.h as a whole is compared with an earlier
 * one.
 */
#ifndef NVML_MEMORY_LIMITS_H
#define NVML_MEMORY_LIMITS_H

#define NVML_DEVICE_MEMORY_LIMIT_MAX 0xFFFFFFFFFFFFFFFF

/* `nameSpace` is the full path of the folder of a control group. Limits in bytes. */
typedef struct {
  const char *nameSpace;
  unsigned long long softLimit;
  unsigned long long hardLimit;
} nvmlSetMemoryLimits_v1_t;

typedef struct {
  const char *nameSpace;
  unsigned long long softLimit;
  unsigned long long hardLimit;
  unsigned long long currentUsed;
} nvmlGetMemoryLimits_v1_t;

#endif
