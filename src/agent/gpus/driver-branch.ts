import type { Inventory } from './driver.js';

/** The first number of the driver's version; 0 if it is unknown. */
export function driverBranch({ driverVersion }: Pick<Inventory, 'driverVersion'>): number {
  return Number(/^\d+/u.exec(driverVersion ?? '')?.[0] ?? 0);
}
