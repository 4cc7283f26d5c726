import { realpath } from 'node:fs/promises';

/**
 * The PCIe root complex that a device hangs on, as `pci0000:3a`: the first step of its place in sysfs. Null where the
 * machine does not show it, as for a simulated GPU. `pciBusId` as NVML prints it.
 */
export async function pcieRoot(pciBusId: string): Promise<string | null> {
  const address = pciBusId.toLowerCase().replace(/^0000(?=[0-9a-f]{4}:)/, '');
  const path = await realpath(`/sys/bus/pci/devices/${address}`).catch(() => '');
  return /\/(pci[0-9a-f]{4}:[0-9a-f]{2})\//.exec(path)?.[1] ?? null;
}
