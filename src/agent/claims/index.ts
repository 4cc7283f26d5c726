export { examineCdi } from './cdi-support.js';
export type { Patience } from './claim-preparer.js';
export type { ClaimsConfig } from './claims-config.js';
export { type Dra, draProblems } from './dra.js';
export { kubeletPluginSockets } from './kubelet-plugin.js';
export { openClaimFiles, openClaims } from './open-claims.js';
