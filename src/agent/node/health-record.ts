import type { Part } from '../../host/lifecycle.js';
import type { GpuHealthFile, HealthMonitor } from '../gpus/index.js';
import type { NodeRecord } from './node-record.js';

/** Records health changes of GPUs in the journal, and on disk for the next run. */
export function healthRecord(record: NodeRecord, file: GpuHealthFile, health: HealthMonitor): Part {
  let leave: readonly (() => void)[] = [];
  return {
    name: 'record',
    async start() {
      leave = [record.follow(health), file.follow(health)];
    },
    async stop() {
      for (const each of leave) each();
      await file.settle();
    },
  };
}
