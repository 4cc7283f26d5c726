import { count, trimmed } from './format.js';

/** The GPUs of a list on which nothing is allocated, and that pods may get. */
export function wholeFree(gpus) {
  return gpus.filter(({ allocatedCores, problem }) => allocatedCores === 0 && problem === undefined).length;
}

/** What is free of the GPUs of a node: whole GPUs, or else the parts that are left. */
export function freeText(gpus) {
  const whole = wholeFree(gpus);
  if (whole > 0) return `${count(whole, 'whole GPU')} free`;
  const parts = gpus.reduce((sum, gpu) => sum + (gpu.problem === undefined ? 100 - gpu.allocatedCores : 0), 0) / 100;
  return parts <= 0 ? 'no GPU free' : `${trimmed(parts)} GPU free in parts`;
}
