export type { AnnouncedContainers } from './announced-containers.js';
export { type RuntimeConfig, connectConfiguredRuntime } from './configured-runtime.js';
export { type CdiConfiguration, RuntimeError, type RuntimeVersion } from './container.js';
export type { NodeContainers } from './node-containers.js';
export { type Runtimes, openRuntimes } from './open-runtimes.js';
