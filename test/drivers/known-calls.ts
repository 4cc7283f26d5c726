import { readFileSync } from 'node:fs';
import { packageFile } from '../../src/host/package-files.js';

/** A call in the lists below native/include. */
export interface KnownCall {
  /** Its name for `cuGetProcAddress`. */
  readonly name: string;
  /** The exported symbol. */
  readonly symbol: string;
  readonly hooked: boolean;
}

/** Every call of CUDA's driver API that the control library knows. */
export function cudaCalls(): KnownCall[] {
  const text = readFileSync(packageFile('native/include/cuda_calls.def'), 'utf8');
  return [...text.matchAll(/^CUDA_([A-Z]+)\(\d+, (\w+), (\w+)/gm)].map(([, kind, name = '', symbol = '']) => ({
    name,
    symbol,
    hooked: kind === 'HOOK',
  }));
}

/** Every call of NVML that the control library knows. */
export function nvmlCalls(): KnownCall[] {
  const text = readFileSync(packageFile('native/include/nvml_calls.def'), 'utf8');
  return [...text.matchAll(/^NVML_(?:NAME\(|([A-Z]+)\([^,]*, )(\w+)/gm)].map(([, kind, symbol = '']) => ({
    name: symbol,
    symbol,
    hooked: kind === 'HOOK',
  }));
}

/** Calls of NVML that every container is refused, whatever the state of the driver. */
export function refusedCalls(): ReadonlySet<string> {
  const text = readFileSync(packageFile('native/control/nvml_refused.h'), 'utf8');
  return new Set([...text.matchAll(/^ *NAME\((nvml\w+)\)/gm)].map(([, name = '']) => name));
}
