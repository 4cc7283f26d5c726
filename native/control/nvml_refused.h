/*
 * NVML functions that are refused in a container: those that change a GPU used by other containers, and those that
 * report what others do on it. The driver refuses most of them to users without administrator rights on the host. This
 * refusal does not depend on how the container was started.
 */
#ifndef VGPU_NVML_REFUSED_H
#define VGPU_NVML_REFUSED_H

/* Change a GPU, its partitioning, or what other users see of it. */
#define NVML_MODIFIES(NAME)                                                                                            \
  NAME(nvmlDeviceSetComputeMode)                                                                                       \
  NAME(nvmlComputeInstanceDestroy)                                                                                     \
  NAME(nvmlDeviceClearAccountingPids)                                                                                  \
  NAME(nvmlDeviceClearEccErrorCounts)                                                                                  \
  NAME(nvmlDeviceClearFieldValues)                                                                                     \
  NAME(nvmlDeviceCreateGpuInstance)                                                                                    \
  NAME(nvmlDeviceCreateGpuInstanceWithPlacement)                                                                       \
  NAME(nvmlDeviceDiscoverGpus)                                                                                         \
  NAME(nvmlDeviceFreezeNvLinkUtilizationCounter)                                                                       \
  NAME(nvmlDeviceLockNvlinkRemapTable_v1)                                                                              \
  NAME(nvmlDeviceModifyDrainState)                                                                                     \
  NAME(nvmlDevicePowerSmoothingActivatePresetProfile)                                                                  \
  NAME(nvmlDevicePowerSmoothingSetState)                                                                               \
  NAME(nvmlDevicePowerSmoothingUpdatePresetProfileParam)                                                               \
  NAME(nvmlDeviceReadPRMCounters_v1)                                                                                   \
  NAME(nvmlDeviceReadWritePRM_v1)                                                                                      \
  NAME(nvmlDeviceRemoveGpu)                                                                                            \
  NAME(nvmlDeviceRemoveGpu_v2)                                                                                         \
  NAME(nvmlDeviceResetApplicationsClocks)                                                                              \
  NAME(nvmlDeviceResetGpuLockedClocks)                                                                                 \
  NAME(nvmlDeviceResetMemoryLockedClocks)                                                                              \
  NAME(nvmlDeviceResetNvLinkErrorCounters)                                                                             \
  NAME(nvmlDeviceResetNvLinkUtilizationCounter)                                                                        \
  NAME(nvmlDeviceSetAPIRestriction)                                                                                    \
  NAME(nvmlDeviceSetAccountingMode)                                                                                    \
  NAME(nvmlDeviceSetAdaptiveTgpMode_v1)                                                                                \
  NAME(nvmlDeviceSetApplicationsClocks)                                                                                \
  NAME(nvmlDeviceSetAutoBoostedClocksEnabled)                                                                          \
  NAME(nvmlDeviceSetClockOffsets)                                                                                      \
  NAME(nvmlDeviceSetConfComputeUnprotectedMemSize)                                                                     \
  NAME(nvmlDeviceSetDefaultAutoBoostedClocksEnabled)                                                                   \
  NAME(nvmlDeviceSetDefaultFanSpeed_v2)                                                                                \
  NAME(nvmlDeviceSetDramEncryptionMode)                                                                                \
  NAME(nvmlDeviceSetDriverModel)                                                                                       \
  NAME(nvmlDeviceSetEccMode)                                                                                           \
  NAME(nvmlDeviceSetFanControlPolicy)                                                                                  \
  NAME(nvmlDeviceSetFanSpeed_v2)                                                                                       \
  NAME(nvmlDeviceSetGpcClkVfOffset)                                                                                    \
  NAME(nvmlDeviceSetGpuLockedClocks)                                                                                   \
  NAME(nvmlDeviceSetGpuOperationMode)                                                                                  \
  NAME(nvmlDeviceSetHostname_v1)                                                                                       \
  NAME(nvmlDeviceSetMemClkVfOffset)                                                                                    \
  NAME(nvmlDeviceSetMemoryLimits_v1)                                                                                   \
  NAME(nvmlDeviceSetMemoryLockedClocks)                                                                                \
  NAME(nvmlDeviceSetMigMode)                                                                                           \
  NAME(nvmlDeviceSetNvLinkDeviceLowPowerThreshold)                                                                     \
  NAME(nvmlDeviceSetNvLinkUtilizationControl)                                                                          \
  NAME(nvmlDeviceSetNvlinkBwMode)                                                                                      \
  NAME(nvmlDeviceSetNvlinkBwModeAsync_v1)                                                                              \
  NAME(nvmlDeviceSetNvlinkNvleReady_v1)                                                                                \
  NAME(nvmlDeviceSetPersistenceMode)                                                                                   \
  NAME(nvmlDeviceSetPowerManagementLimit)                                                                              \
  NAME(nvmlDeviceSetPowerManagementLimit_v2)                                                                           \
  NAME(nvmlDeviceSetPowerMizerMode_v1)                                                                                 \
  NAME(nvmlDeviceSetRusdSettings_v1)                                                                                   \
  NAME(nvmlDeviceSetTemperatureThreshold)                                                                              \
  NAME(nvmlDeviceSetVgpuCapabilities)                                                                                  \
  NAME(nvmlDeviceSetVgpuHeterogeneousMode)                                                                             \
  NAME(nvmlDeviceSetVgpuSchedulerState)                                                                                \
  NAME(nvmlDeviceSetVgpuSchedulerState_v2)                                                                             \
  NAME(nvmlDeviceSetVirtualizationMode)                                                                                \
  NAME(nvmlDeviceSetupNvlinkNvleEncryptionKey_v1)                                                                      \
  NAME(nvmlDeviceVgpuForceGspUnload)                                                                                   \
  NAME(nvmlDeviceWorkloadPowerProfileClearRequestedProfiles)                                                           \
  NAME(nvmlDeviceWorkloadPowerProfileSetRequestedProfiles)                                                             \
  NAME(nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1)                                                                \
  NAME(nvmlGpmSetStreamingEnabled)                                                                                     \
  NAME(nvmlGpuInstanceCreateComputeInstance)                                                                           \
  NAME(nvmlGpuInstanceCreateComputeInstanceWithPlacement)                                                              \
  NAME(nvmlGpuInstanceDestroy)                                                                                         \
  NAME(nvmlGpuInstanceSetVgpuHeterogeneousMode)                                                                        \
  NAME(nvmlGpuInstanceSetVgpuSchedulerState)                                                                           \
  NAME(nvmlGpuInstanceSetVgpuSchedulerState_v2)                                                                        \
  NAME(nvmlSetVgpuVersion)                                                                                             \
  NAME(nvmlSystemSetConfComputeGpusReadyState)                                                                         \
  NAME(nvmlSystemSetConfComputeKeyRotationThresholdInfo)                                                               \
  NAME(nvmlSystemSetNvlinkBwMode)                                                                                      \
  NAME(nvmlUnitSetLedState)                                                                                            \
  NAME(nvmlVgpuInstanceClearAccountingPids)                                                                            \
  NAME(nvmlVgpuInstanceSetEncoderCapacity)

/* Report processes or virtual machines of others on a GPU, or the total use of the GPU. */
#define NVML_REPORTS_OTHERS(NAME)                                                                                      \
  NAME(nvmlDeviceGetEncoderUtilization)                                                                                \
  NAME(nvmlDeviceGetDecoderUtilization)                                                                                \
  NAME(nvmlDeviceGetJpgUtilization)                                                                                    \
  NAME(nvmlDeviceGetOfaUtilization)                                                                                    \
  NAME(nvmlDeviceGetDynamicPstatesInfo)                                                                                \
  NAME(nvmlDeviceGetEncoderStats)                                                                                      \
  NAME(nvmlDeviceGetFBCStats)                                                                                          \
  NAME(nvmlGpmMetricsGet)                                                                                              \
  NAME(nvmlGpmSampleGet)                                                                                               \
  NAME(nvmlGpmMigSampleGet)                                                                                            \
  NAME(nvmlDevicePerfMetricsGetSamples_v1)                                                                             \
  NAME(nvmlDeviceGetAccountingPids)                                                                                    \
  NAME(nvmlDeviceGetAccountingStats)                                                                                   \
  NAME(nvmlDeviceGetAccountingStats_v2)                                                                                \
  NAME(nvmlDeviceGetEncoderSessions)                                                                                   \
  NAME(nvmlDeviceGetFBCSessions)                                                                                       \
  NAME(nvmlDeviceGetVgpuInstancesUtilizationInfo)                                                                      \
  NAME(nvmlDeviceGetVgpuProcessUtilization)                                                                            \
  NAME(nvmlDeviceGetVgpuProcessesUtilizationInfo)                                                                      \
  NAME(nvmlDeviceGetVgpuUtilization)                                                                                   \
  NAME(nvmlVgpuInstanceGetAccountingPids)                                                                              \
  NAME(nvmlVgpuInstanceGetAccountingStats)                                                                             \
  NAME(nvmlVgpuInstanceGetEncoderSessions)                                                                             \
  NAME(nvmlVgpuInstanceGetFBCSessions)

/* The replacement of a call in a container with a slice; NULL: call the driver. */
void *nvml_refusal(const char *name);

#endif
