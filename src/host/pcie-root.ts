import { realpath } from 'node:fs/promises';

/**
 * The PCIe root complex of a device, such as `pci0000:3a`: the first element of its path in sysfs. Null if the machine
 * does not show it, as for a simulated GPU. `pciBusId` is in NVML's format.
 */
export async function pcieRoot(pciBusId: string): Promise<string | null> {
  const address = pciBusId.toLowerCase().replace(/^0000(?=[0-9a-f]{4}:)/, '');
  const path = await realpath(`/sys/bus/pci/devices/${address}`).catch(() => '');
  return /\/(pci[0-9a-f]{4}:[0-9a-f]{2})\//.exec(path)?.[1] ?? null;
}
