import { count } from './format.js';

/** The GPUs of a list on which nothing is allocated, and that pods may get. */
export function wholeFree(gpus) {
  return gpus.filter(({ allocatedCores, problem }) => allocatedCores === 0 && problem === undefined).length;
}

/** Text about the free GPUs of a node: whole GPUs, or else the cores that are left. */
export function freeText(gpus) {
  const whole = wholeFree(gpus);
  const forClaims = gpus.every(({ byClaims = false }) => byClaims) ? ' for claims' : '';
  if (whole > 0) return `${count(whole, 'whole GPU')} free${forClaims}`;
  const cores = gpus.reduce((sum, gpu) => sum + (gpu.problem === undefined ? 100 - gpu.allocatedCores : 0), 0);
  return cores <= 0 ? 'no cores free' : `${count(cores, 'core')} free${forClaims || ' in parts'}`;
}

/** GPUs that pods do not get because they are not healthy. */
export function unhealthy(gpus) {
  return gpus.filter(({ problem }) => problem !== undefined).length;
}
