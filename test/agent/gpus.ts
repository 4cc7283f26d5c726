/** The six GPUs of the original's own tests: PIX pairs 0-1, 2-3, 4-5; PHB among 0 to 3; NODE across. 16 GiB each. */
export const SIX_GPUS = `\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5
GPU0\tX\tPIX\tPHB\tPHB\tNODE\tNODE
GPU1\tPIX\tX\tPHB\tPHB\tNODE\tNODE
GPU2\tPHB\tPHB\tX\tPIX\tNODE\tNODE
GPU3\tPHB\tPHB\tPIX\tX\tNODE\tNODE
GPU4\tNODE\tNODE\tNODE\tNODE\tX\tPIX
GPU5\tNODE\tNODE\tNODE\tNODE\tPIX\tX
`;

/** `count` equal GPUs of `memoryMiB` each. */
export function cards(count: number, memoryMiB = 16_384): string {
  return JSON.stringify({ gpus: Array.from({ length: count }, () => ({ memoryMiB })) });
}
