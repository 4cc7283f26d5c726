import { relative } from 'node:path';
import type { DeviceNode } from '../../gpu/container-edits.js';
import { charLinkCommand, makeCharLinks, missingCharLinks } from '../../host/char-links.js';
import type { Log } from '../../host/log.js';

/**
 * Makes the links by which systemd knows device nodes, whenever nodes are handed out: some nodes exist only after the
 * first use of the driver. `devices` is the host's /dev. If it cannot be written, the log names the command, once.
 */
export function deviceLinks(devices: string, log: Log): (nodes: readonly DeviceNode[]) => void {
  let failed = false;
  return (nodes) => {
    const missing = missingCharLinks(
      nodes.map(({ hostPath }) => relative('/dev', hostPath)),
      devices,
    );
    if (missing.length === 0 || failed) return;
    try {
      makeCharLinks(missing, devices);
      log.info({ links: missing.map(({ path }) => `/dev/${path}`) }, 'links of device nodes made for systemd');
    } catch (error) {
      failed = true;
      log.warn(
        { reason: (error as Error).message, command: charLinkCommand(missing) },
        'systemctl daemon-reload may take the GPUs from running containers; run this command on the host at each boot',
      );
    }
  };
}
