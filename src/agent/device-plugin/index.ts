export type { DeviceSource } from './devices.js';
export { ONE_PLUGIN, type PodNames } from './holders.js';
export { KUBELET_CHECKPOINT_FILE, readKubeletCheckpoint } from './internal-checkpoint.js';
export { kubeletFile } from './kubelet-file.js';
export { openDevicePlugin, openHolders } from './open-kubelet.js';
export type { DevicePlugin } from './plugin.js';
export { PodResourcesClient } from './pod-resources.js';
