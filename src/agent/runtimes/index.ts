export type { AnnouncedContainers } from './announced-containers.js';
export { cgroupLines } from './cgroup-path.js';
export { type RuntimeConfig, connectConfiguredRuntime } from './configured-runtime.js';
export { type CdiConfiguration, type Container, RuntimeError, type RuntimeVersion } from './container.js';
export type { ContainerKnowledge, ProcessPlace } from './container-knowledge.js';
export { type ControlGroups, controlGroups } from './control-groups.js';
export { groupFolder } from './group-folder.js';
export type { NodeContainers } from './node-containers.js';
export { type Runtimes, openRuntimes } from './open-runtimes.js';
