import { cpus, release, totalmem } from 'node:os';

/** What the figures of a run depend on, besides the code. */
export interface MachineFacts {
  readonly date: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
}

/** The properties of the machine that runs this. */
export function machineFacts(): MachineFacts {
  const all = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}
