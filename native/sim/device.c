#include "context.h"
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SIM_API CUresult cuDeviceGetCount(int *count) {
  ENTER();
  NEED(count != NULL);
  *count = (int)driver.count;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER();
  NEED(device != NULL);
  NEED_DEVICE(ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  ENTER();
  NEED(name != NULL && length > 0);
  NEED_DEVICE(device);
  snprintf(name, (size_t)length, "%s", driver_gpu(device)->model);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  ENTER();
  NEED(uuid != NULL);
  NEED_DEVICE(device);
  sim_gpu_uuid(driver_gpu(device), (unsigned char *)uuid->bytes);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

/* Exists only on Windows. */
SIM_API CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device) {
  ENTER();
  NEED(luid != NULL && mask != NULL);
  NEED_DEVICE(device);
  return CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER();
  NEED(bytes != NULL);
  NEED_DEVICE(device);
  *bytes = sim_ledger_capacity(driver.machine, driver.gpus[device]);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device) {
  size_t wide;
  NEED(bytes != NULL);
  TRY(cuDeviceTotalMem_v2(&wide, device));
  *bytes = wide > UINT32_MAX ? UINT32_MAX : (unsigned int)wide;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  ENTER();
  NEED(major != NULL && minor != NULL);
  NEED_DEVICE(device);
  *major = (int)driver_gpu(device)->major;
  *minor = (int)driver_gpu(device)->minor_capability;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
  ENTER();
  NEED(text != NULL && length > 0);
  NEED_DEVICE(device);
  const struct sim_gpu *gpu = driver_gpu(device);
  snprintf(text, (size_t)length, "%04X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  unsigned int domain = 0, bus, slot;
  ENTER();
  NEED(device != NULL && text != NULL);
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    NEED(sscanf(text, "%x:%x", &bus, &slot) == 2);
  }
  for (CUdevice i = 0; driver_has(i); i++) {
    const struct sim_gpu *gpu = driver_gpu(i);
    if (gpu->pci_domain != domain || gpu->pci_bus != bus || gpu->pci_device != slot) continue;
    *device = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

SIM_API CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice device) {
  ENTER();
  NEED(supported != NULL && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT);
  NEED_DEVICE(device);
  *supported = 0;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned int channels,
                                                    CUdevice device) {
  ENTER();
  (void)format;
  NEED(width != NULL && channels > 0);
  NEED_DEVICE(device);
  *width = (size_t)1 << 28;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                            CUflushGPUDirectRDMAWritesScope scope) {
  ENTER();
  (void)target, (void)scope;
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- peer access: between GPUs connected by NVLink or a PCIe switch ---- */

static bool are_peers(CUdevice a, CUdevice b) {
  const struct sim_node *node = &driver.machine->node;
  uint32_t x = driver.gpus[a], y = driver.gpus[b];
  return a != b && (node->nvlinks[x][y] > 0 || node->level[x][y] <= SIM_PHB);
}

SIM_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENTER();
  NEED(can != NULL);
  NEED_DEVICE(device);
  NEED_DEVICE(peer);
  *can = are_peers(device, peer);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source,
                                         CUdevice target) {
  ENTER();
  NEED(value != NULL && source != target);
  NEED_DEVICE(source);
  NEED_DEVICE(target);
  bool linked = driver.machine->node.nvlinks[driver.gpus[source]][driver.gpus[target]] > 0;
  switch (attribute) {
  case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    *value = linked ? 0 : 1;
    return CUDA_SUCCESS;
  case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
  case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
    *value = are_peers(source, target);
    return CUDA_SUCCESS;
  case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    *value = linked;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/* Bit n in the row of a context's device: the context may access device n. */
static _Atomic uint32_t enabled[SIM_MAX_GPUS];

SIM_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  CUcontext context;
  ENTER();
  NEED(flags == 0);
  TRY(driver_current(&context));
  TRY(context_check(peer));
  if (!are_peers(context->device, peer->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  uint32_t bit = 1u << peer->device;
  return atomic_fetch_or(&enabled[context->device], bit) & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

SIM_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  CUcontext context;
  ENTER();
  TRY(driver_current(&context));
  TRY(context_check(peer));
  uint32_t bit = 1u << peer->device;
  return atomic_fetch_and(&enabled[context->device], ~bit) & bit ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
