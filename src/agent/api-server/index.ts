export { type ApiServerConfig, openApiServer } from './connect.js';
export type { NodeCondition, NodeConditionState } from './node-condition.js';
export type { NodeKube } from './node-kube.js';
export type { NodeLabels } from './node-labels.js';
export { isOver, usesGpu } from './node-pod.js';
