import { VCUDA_CONFIG, type VcudaConfig } from '../../src/abi/vcuda-config.js';

/** The content of a `vcuda.config`, as the library of tkestack vcuda-controller reads it. */
export function readVcudaConfig(buffer: Buffer): VcudaConfig & { readonly enabled: boolean } {
  const text = (from: number, room: number) => buffer.toString('utf8', from, from + room).replace(/\0.*$/s, '');
  const hard = buffer.readInt32LE(VCUDA_CONFIG.hardLimit) !== 0;
  return {
    enabled: buffer.readInt32LE(VCUDA_CONFIG.enable) !== 0,
    podUid: text(VCUDA_CONFIG.podUid, 48),
    containerName: text(VCUDA_CONFIG.containerName, 4096),
    busId: text(VCUDA_CONFIG.busId, 16),
    gpuMemoryBytes: Number(buffer.readBigUInt64LE(VCUDA_CONFIG.gpuMemoryBytes)),
    cores: buffer.readInt32LE(VCUDA_CONFIG.utilization),
    softLimit: hard ? null : buffer.readInt32LE(VCUDA_CONFIG.limit),
    driverVersion: {
      major: buffer.readInt32LE(VCUDA_CONFIG.driverMajor),
      minor: buffer.readInt32LE(VCUDA_CONFIG.driverMinor),
    },
  };
}
