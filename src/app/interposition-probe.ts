/**
 * A program of its own, for `gpu-manager doctor`: loads libcuda.so.1 the way a container would and says as JSON which files answered and what
 * they said. It runs in a scratch process, since a driver or a library that crashes takes its process with it.
 */
import { readFileSync } from 'node:fs';
import koffi from 'koffi';

export interface ProbeReport {
  /** Paths of mapped files whose names tell of CUDA or NVML. */
  readonly mapped: readonly string[];
  /** Result of cuInit(0); 0 is success. */
  readonly init: number;
  /** As cuDriverGetVersion answers; null when it failed. */
  readonly cudaVersion: number | null;
  readonly devices: number | null;
}

function probe(): ProbeReport {
  const cuda = koffi.load('libcuda.so.1');
  const init = cuda.func('int cuInit(unsigned int flags)') as (flags: number) => number;
  const ask = (name: string): number | null => {
    const call = cuda.func(`int ${name}(_Out_ int *value)`) as (value: [number]) => number;
    const value: [number] = [0];
    return call(value) === 0 ? value[0] : null;
  };
  const initialised = init(0);
  const cudaVersion = ask('cuDriverGetVersion');
  const devices = initialised === 0 ? ask('cuDeviceGetCount') : null;
  const maps = readFileSync('/proc/self/maps', 'utf8').split('\n').map((line) => line.split(/\s+/u)[5] ?? '');
  return { mapped: [...new Set(maps.filter((path) => /libcuda|nvidia-ml|libgpu-sim|control/u.test(path)))], init: initialised, cudaVersion, devices };
}

process.stdout.write(`${JSON.stringify(probe())}\n`);
