export { CPU_MANAGER_FILE, readCpuManagerPolicy } from './cpu-manager.js';
export { type Nri, type NriConfig, openNri } from './nri.js';
