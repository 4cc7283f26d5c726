/*
 * The one list of hooked driver functions. Everything about them is made from it by the preprocessor: what is exported,
 * the table of real functions, how cuGetProcAddress recognises them.
 *
 * HOOK(exported name, name that cuGetProcAddress knows it by, CUDA version since which that name means it, default
 * stream)
 */
#ifndef VGPU_HOOKS_H
#define VGPU_HOOKS_H

#include "cuda_abi.h"

#define LEGACY CU_GET_PROC_ADDRESS_DEFAULT
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

#define HOOKS_START(HOOK)                                                                                              \
  HOOK(cuInit, "cuInit", 2000, LEGACY)                                                                                 \
  HOOK(cuGetProcAddress, "cuGetProcAddress", 11030, LEGACY)                                                            \
  HOOK(cuGetProcAddress_v2, "cuGetProcAddress", 12000, LEGACY)

#define HOOKS_INFO(HOOK)                                                                                               \
  HOOK(cuDeviceTotalMem, "cuDeviceTotalMem", 2000, LEGACY)                                                             \
  HOOK(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, LEGACY)                                                          \
  HOOK(cuMemGetInfo, "cuMemGetInfo", 2000, LEGACY)                                                                     \
  HOOK(cuMemGetInfo_v2, "cuMemGetInfo", 3020, LEGACY)

#define HOOKS_CONTEXT(HOOK)                                                                                            \
  HOOK(cuCtxDestroy, "cuCtxDestroy", 2000, LEGACY)                                                                     \
  HOOK(cuCtxDestroy_v2, "cuCtxDestroy", 4000, LEGACY)                                                                  \
  HOOK(cuCtxDetach, "cuCtxDetach", 2000, LEGACY)                                                                       \
  HOOK(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, LEGACY)                                           \
  HOOK(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, LEGACY)                                       \
  HOOK(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, LEGACY)                                               \
  HOOK(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, LEGACY)

#define HOOKS_MEMORY(HOOK)                                                                                             \
  HOOK(cuMemAlloc, "cuMemAlloc", 2000, LEGACY)                                                                         \
  HOOK(cuMemAlloc_v2, "cuMemAlloc", 3020, LEGACY)                                                                      \
  HOOK(cuMemAllocPitch, "cuMemAllocPitch", 2000, LEGACY)                                                               \
  HOOK(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, LEGACY)                                                            \
  HOOK(cuMemAllocManaged, "cuMemAllocManaged", 6000, LEGACY)                                                           \
  HOOK(cuMemFree, "cuMemFree", 2000, LEGACY)                                                                           \
  HOOK(cuMemFree_v2, "cuMemFree", 3020, LEGACY)                                                                        \
  HOOK(cuArrayCreate, "cuArrayCreate", 2000, LEGACY)                                                                   \
  HOOK(cuArrayCreate_v2, "cuArrayCreate", 3020, LEGACY)                                                                \
  HOOK(cuArray3DCreate, "cuArray3DCreate", 2000, LEGACY)                                                               \
  HOOK(cuArray3DCreate_v2, "cuArray3DCreate", 3020, LEGACY)                                                            \
  HOOK(cuArrayDestroy, "cuArrayDestroy", 2000, LEGACY)                                                                 \
  HOOK(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, LEGACY)                                                 \
  HOOK(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, LEGACY)                                               \
  HOOK(cuImportExternalMemory, "cuImportExternalMemory", 10000, LEGACY)                                                \
  HOOK(cuDestroyExternalMemory, "cuDestroyExternalMemory", 10000, LEGACY)

#define HOOKS_VMM(HOOK)                                                                                                \
  HOOK(cuMemCreate, "cuMemCreate", 10020, LEGACY)                                                                      \
  HOOK(cuMemRelease, "cuMemRelease", 10020, LEGACY)                                                                    \
  HOOK(cuMemMap, "cuMemMap", 10020, LEGACY)                                                                            \
  HOOK(cuMemUnmap, "cuMemUnmap", 10020, LEGACY)                                                                        \
  HOOK(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, LEGACY)

#define HOOKS_POOL(HOOK)                                                                                               \
  HOOK(cuMemAllocAsync, "cuMemAllocAsync", 11020, LEGACY)                                                              \
  HOOK(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, PER_THREAD)                                                     \
  HOOK(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, LEGACY)                                              \
  HOOK(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, PER_THREAD)                                     \
  HOOK(cuMemFreeAsync, "cuMemFreeAsync", 11020, LEGACY)                                                                \
  HOOK(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, PER_THREAD)                                                       \
  HOOK(cuMemPoolCreate, "cuMemPoolCreate", 11020, LEGACY)                                                              \
  HOOK(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, LEGACY)                                                            \
  HOOK(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, LEGACY)                                                              \
  HOOK(cuMemPoolImportFromShareableHandle, "cuMemPoolImportFromShareableHandle", 11020, LEGACY)                        \
  HOOK(cuStreamSynchronize, "cuStreamSynchronize", 2000, LEGACY)                                                       \
  HOOK(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, PER_THREAD)                                              \
  HOOK(cuEventSynchronize, "cuEventSynchronize", 2000, LEGACY)                                                         \
  HOOK(cuCtxSynchronize, "cuCtxSynchronize", 2000, LEGACY)

#define HOOKS_GRAPH(HOOK)                                                                                              \
  HOOK(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040, LEGACY)                                                \
  HOOK(cuGraphAddNode, "cuGraphAddNode", 12020, LEGACY)                                                                \
  HOOK(cuGraphAddNode_v2, "cuGraphAddNode", 12030, LEGACY)                                                             \
  HOOK(cuGraphInstantiate, "cuGraphInstantiate", 10000, LEGACY)                                                        \
  HOOK(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, LEGACY)                                                     \
  HOOK(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, LEGACY)                                      \
  HOOK(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, LEGACY)                                    \
  HOOK(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, PER_THREAD)                           \
  HOOK(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, LEGACY)                                                        \
  HOOK(cuGraphExecUpdate, "cuGraphExecUpdate", 10020, LEGACY)                                                          \
  HOOK(cuGraphExecUpdate_v2, "cuGraphExecUpdate", 12000, LEGACY)                                                       \
  HOOK(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams", 10010, LEGACY)                                \
  HOOK(cuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams", 12000, LEGACY)                             \
  HOOK(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", 12020, LEGACY)                                            \
  HOOK(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", 11040, LEGACY)

#define HOOKS_LAUNCH(HOOK)                                                                                             \
  HOOK(cuLaunchKernel, "cuLaunchKernel", 4000, LEGACY)                                                                 \
  HOOK(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, PER_THREAD)                                                        \
  HOOK(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, LEGACY)                                                            \
  HOOK(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, PER_THREAD)                                                   \
  HOOK(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, LEGACY)                                           \
  HOOK(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, PER_THREAD)                                  \
  HOOK(cuLaunchCooperativeKernelMultiDevice, "cuLaunchCooperativeKernelMultiDevice", 9000, LEGACY)                     \
  HOOK(cuLaunch, "cuLaunch", 2000, LEGACY)                                                                             \
  HOOK(cuLaunchGrid, "cuLaunchGrid", 2000, LEGACY)                                                                     \
  HOOK(cuLaunchGridAsync, "cuLaunchGridAsync", 2000, LEGACY)                                                           \
  HOOK(cuGraphLaunch, "cuGraphLaunch", 10000, LEGACY)                                                                  \
  HOOK(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, PER_THREAD)                                                         \
  HOOK(cuGraphUpload, "cuGraphUpload", 11010, LEGACY)                                                                  \
  HOOK(cuGraphUpload_ptsz, "cuGraphUpload", 11010, PER_THREAD)                                                         \
  HOOK(cuStreamBeginCapture, "cuStreamBeginCapture", 10000, LEGACY)                                                    \
  HOOK(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 10000, PER_THREAD)                                           \
  HOOK(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, LEGACY)                                                 \
  HOOK(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, PER_THREAD)                                        \
  HOOK(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, LEGACY)                                      \
  HOOK(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, PER_THREAD)                             \
  HOOK(cuStreamEndCapture, "cuStreamEndCapture", 10000, LEGACY)                                                        \
  HOOK(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, PER_THREAD)

/* Copies within the device and fills: they run on the SMs like a kernel. */
#define HOOKS_FILL(HOOK)                                                                                               \
  HOOK(cuMemcpyDtoD, "cuMemcpyDtoD", 2000, LEGACY)                                                                     \
  HOOK(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020, LEGACY)                                                                  \
  HOOK(cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD", 7000, PER_THREAD)                                                         \
  HOOK(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync", 3000, LEGACY)                                                           \
  HOOK(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, LEGACY)                                                        \
  HOOK(cuMemcpyDtoDAsync_v2_ptsz, "cuMemcpyDtoDAsync", 7000, PER_THREAD)                                               \
  HOOK(cuMemsetD8, "cuMemsetD8", 2000, LEGACY)                                                                         \
  HOOK(cuMemsetD8_v2, "cuMemsetD8", 3020, LEGACY)                                                                      \
  HOOK(cuMemsetD8_v2_ptds, "cuMemsetD8", 7000, PER_THREAD)                                                             \
  HOOK(cuMemsetD16, "cuMemsetD16", 2000, LEGACY)                                                                       \
  HOOK(cuMemsetD16_v2, "cuMemsetD16", 3020, LEGACY)                                                                    \
  HOOK(cuMemsetD16_v2_ptds, "cuMemsetD16", 7000, PER_THREAD)                                                           \
  HOOK(cuMemsetD32, "cuMemsetD32", 2000, LEGACY)                                                                       \
  HOOK(cuMemsetD32_v2, "cuMemsetD32", 3020, LEGACY)                                                                    \
  HOOK(cuMemsetD32_v2_ptds, "cuMemsetD32", 7000, PER_THREAD)                                                           \
  HOOK(cuMemsetD2D8, "cuMemsetD2D8", 2000, LEGACY)                                                                     \
  HOOK(cuMemsetD2D8_v2, "cuMemsetD2D8", 3020, LEGACY)                                                                  \
  HOOK(cuMemsetD2D8_v2_ptds, "cuMemsetD2D8", 7000, PER_THREAD)                                                         \
  HOOK(cuMemsetD2D16, "cuMemsetD2D16", 2000, LEGACY)                                                                   \
  HOOK(cuMemsetD2D16_v2, "cuMemsetD2D16", 3020, LEGACY)                                                                \
  HOOK(cuMemsetD2D16_v2_ptds, "cuMemsetD2D16", 7000, PER_THREAD)                                                       \
  HOOK(cuMemsetD2D32, "cuMemsetD2D32", 2000, LEGACY)                                                                   \
  HOOK(cuMemsetD2D32_v2, "cuMemsetD2D32", 3020, LEGACY)                                                                \
  HOOK(cuMemsetD2D32_v2_ptds, "cuMemsetD2D32", 7000, PER_THREAD)                                                       \
  HOOK(cuMemsetD8Async, "cuMemsetD8Async", 3020, LEGACY)                                                               \
  HOOK(cuMemsetD8Async_ptsz, "cuMemsetD8Async", 7000, PER_THREAD)                                                      \
  HOOK(cuMemsetD16Async, "cuMemsetD16Async", 3020, LEGACY)                                                             \
  HOOK(cuMemsetD16Async_ptsz, "cuMemsetD16Async", 7000, PER_THREAD)                                                    \
  HOOK(cuMemsetD32Async, "cuMemsetD32Async", 3020, LEGACY)                                                             \
  HOOK(cuMemsetD32Async_ptsz, "cuMemsetD32Async", 7000, PER_THREAD)                                                    \
  HOOK(cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, LEGACY)                                                           \
  HOOK(cuMemsetD2D8Async_ptsz, "cuMemsetD2D8Async", 7000, PER_THREAD)                                                  \
  HOOK(cuMemsetD2D16Async, "cuMemsetD2D16Async", 3020, LEGACY)                                                         \
  HOOK(cuMemsetD2D16Async_ptsz, "cuMemsetD2D16Async", 7000, PER_THREAD)                                                \
  HOOK(cuMemsetD2D32Async, "cuMemsetD2D32Async", 3020, LEGACY)                                                         \
  HOOK(cuMemsetD2D32Async_ptsz, "cuMemsetD2D32Async", 7000, PER_THREAD)

#define HOOKS(HOOK)                                                                                                    \
  HOOKS_START(HOOK)                                                                                                    \
  HOOKS_INFO(HOOK)                                                                                                     \
  HOOKS_CONTEXT(HOOK)                                                                                                  \
  HOOKS_MEMORY(HOOK)                                                                                                   \
  HOOKS_VMM(HOOK)                                                                                                      \
  HOOKS_POOL(HOOK)                                                                                                     \
  HOOKS_GRAPH(HOOK)                                                                                                    \
  HOOKS_LAUNCH(HOOK)                                                                                                   \
  HOOKS_FILL(HOOK)

/* Driver functions that the library calls for itself and does not hook. */
#define CALLS(CALL)                                                                                                    \
  CALL(cuDeviceGetCount)                                                                                               \
  CALL(cuDeviceGet)                                                                                                    \
  CALL(cuDeviceGetUuid)                                                                                                \
  CALL(cuDeviceGetUuid_v2)                                                                                             \
  CALL(cuDeviceGetPCIBusId)                                                                                            \
  CALL(cuCtxGetCurrent)                                                                                                \
  CALL(cuCtxGetDevice)                                                                                                 \
  CALL(cuDevicePrimaryCtxGetState)                                                                                     \
  CALL(cuDevicePrimaryCtxRetain)                                                                                       \
  CALL(cuDeviceGetMemPool)                                                                                             \
  CALL(cuMemPoolGetAttribute)                                                                                          \
  CALL(cuDeviceGetGraphMemAttribute)                                                                                   \
  CALL(cuGraphGetNodes)                                                                                                \
  CALL(cuGraphNodeGetType)                                                                                             \
  CALL(cuGraphMemAllocNodeGetParams)                                                                                   \
  CALL(cuGraphChildGraphNodeGetGraph)                                                                                  \
  CALL(cuStreamIsCapturing)                                                                                            \
  CALL(cuEventCreate)                                                                                                  \
  CALL(cuEventRecord)                                                                                                  \
  CALL(cuEventQuery)                                                                                                   \
  CALL(cuStreamQuery)                                                                                                  \
  CALL(cuEventElapsedTime)                                                                                             \
  CALL(cuEventDestroy_v2)

/* Whatever is hooked is exported, and nothing else. */
#define EXPORT(name, base, version, stream) extern __typeof__(name) name __attribute__((visibility("default")));
HOOKS(EXPORT)
#undef EXPORT

#endif
