import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { decodeLimits, type LiveLimit } from '../../../src/abi/limits-file.js';
import { ledgerRange, slotsRange } from '../../../src/abi/usage-file.js';
import {
  DEVICE_USAGE,
  LEDGER_ENTRY,
  PROCESS_SLOT,
  SLOT_STATE,
  USAGE_HEADER,
  USAGE_LAYOUT,
} from '../../../src/abi/vgpu-abi.js';
import type { GpuProcess, GpuSample } from '../../../src/gpu/sample.js';
import type { GpuSource } from '../../../src/agent/gpus/index.js';

/** GPUs whose answers the test sets. */
export class FakeGpus implements GpuSource {
  readonly running = new Map<string, readonly GpuProcess[]>();
  /** Calls by GPU: for the list of processes, and for the other figures. */
  readonly asked = new Map<string, number>();
  readonly sampled = new Map<string, number>();
  failure: Error | null = null;
  utilizationPercent = 50;
  /** Set while the driver does not answer; the answer follows when it resolves. */
  hold: Promise<void> | null = null;

  async sample(uuid: string): Promise<GpuSample> {
    this.sampled.set(uuid, (this.sampled.get(uuid) ?? 0) + 1);
    if (this.failure !== null) throw this.failure;
    return {
      atMs: 0,
      utilizationPercent: this.utilizationPercent,
      usedMemoryBytes: 1,
      temperatureCelsius: 40,
      powerMilliwatts: 1_000,
    };
  }

  async processes(uuid: string): Promise<readonly GpuProcess[]> {
    this.asked.set(uuid, (this.asked.get(uuid) ?? 0) + 1);
    await this.hold;
    if (this.failure !== null) throw this.failure;
    return this.running.get(uuid) ?? [];
  }
}

/** An entry of the process list of the driver. */
export function listed(pid: number, usedMemoryBytes: number | null, utilizationPercent: number | null): GpuProcess {
  return { pid, usedMemoryBytes, utilizationPercent };
}

/** `denied`: the number of denied plain allocations. */
type Counter =
  'chargedNs' | 'waits' | 'launches' | 'samples' | 'throttledNs' | 'levelAtNs' | 'lentAtNs' | 'denied' | 'peakBytes';

/** Writes into a usage file what the library of a container would write. */
export class FakeContainer {
  readonly #directory: string;

  constructor(base: string, allocation: string) {
    this.#directory = join(base, allocation);
  }

  /** Sets counters of a GPU. */
  count(index: number, counters: Partial<Record<Counter, number | bigint>>): void {
    const at = USAGE_LAYOUT.devices + index * DEVICE_USAGE.structSize;
    for (const [name, value] of Object.entries(counters) as [Counter, number | bigint][])
      this.#write(at + DEVICE_USAGE[name], BigInt(value));
  }

  /** Claims a slot for a process, by its pid in the container and its start time. */
  register(slot: number, pid: number, startTicks: number): void {
    this.#raiseHigh(slot);
    this.#write(
      slotsRange(0).position + slot * PROCESS_SLOT.structSize + PROCESS_SLOT.owner,
      (BigInt(startTicks) << 24n) | (BigInt(pid) << 2n) | BigInt(SLOT_STATE.live),
    );
  }

  /** Lets the process in `slot` hold bytes on a GPU. */
  hold(index: number, slot: number, bytes: number): void {
    this.#raiseHigh(slot);
    this.#write(
      ledgerRange(index, 0).position + slot * LEDGER_ENTRY.structSize + LEDGER_ENTRY.heldBytes,
      BigInt(bytes),
    );
  }

  /** Lets the process in `slot` hold bytes beyond the memory limit. */
  holdOnHost(slot: number, bytes: number): void {
    this.#raiseHigh(slot);
    this.#write(slotsRange(0).position + slot * PROCESS_SLOT.structSize + PROCESS_SLOT.hostBackedBytes, BigInt(bytes));
  }

  /** The steering values of a GPU that the process reads now. */
  told(index: number): LiveLimit {
    const decoded = decodeLimits(readFileSync(join(this.#directory, 'vgpu.limits')));
    const live = decoded.ok ? decoded.limits.devices[index] : undefined;
    if (live === undefined) throw new Error('no limits');
    return live;
  }

  get sequence(): number {
    const decoded = decodeLimits(readFileSync(join(this.#directory, 'vgpu.limits')));
    return decoded.ok ? decoded.limits.sequence : -1;
  }

  get #usagePath(): string {
    return join(this.#directory, 'usage/vgpu.usage');
  }

  #raiseHigh(slot: number): void {
    const file = readFileSync(this.#usagePath);
    if (file.readUInt32LE(USAGE_HEADER.slotHigh) > slot) return;
    const high = Buffer.alloc(4);
    high.writeUInt32LE(slot + 1);
    const fd = openSync(this.#usagePath, 'r+');
    writeSync(fd, high, 0, 4, USAGE_HEADER.slotHigh);
    closeSync(fd);
  }

  #write(position: number, value: bigint): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(value);
    const fd = openSync(this.#usagePath, 'r+');
    writeSync(fd, bytes, 0, 8, position);
    closeSync(fd);
  }
}
