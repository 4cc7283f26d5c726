export { findCudaLibrary } from './cuda-library.js';
export {
  type Destroyed,
  type Driver,
  DriverError,
  type GpuDetails,
  type GroupLimiter,
  type GroupLimits,
  type GroupMemory,
  type Inventory,
  type MigPartitioner,
} from './driver.js';
export { type DriverConfig, openDriver } from './drivers.js';
export type { GpuHealthFile } from './gpu-health-file.js';
export { GpuSampler, type GpuSource } from './gpu-sampler.js';
export type { HealthMonitor, HealthNews } from './health-monitor.js';
export { modelName, nodeLabels } from './node-labels.js';
export { type Gpus, openGpus } from './open-gpus.js';
export { driverBranch } from './driver-branch.js';
export { markSmGpus, type SmGpus } from './sm-gpus.js';
