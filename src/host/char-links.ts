import { mkdirSync, readlinkSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/**
 * systemd knows a device of a container by number, as `/dev/char/MAJOR:MINOR`. udev makes these links for the devices
 * that it manages, which NVIDIA's are not. Without them, `systemctl daemon-reload` takes the devices from running
 * containers whose control groups systemd manages: NVML then says "Failed to initialize NVML: Unknown Error".
 */
export interface CharLink {
  /** Path in the directory of devices, such as `char/195:0`. */
  readonly path: string;
  /** The device node, as the content of the link: `../nvidia0`. */
  readonly target: string;
}

/** The links that lack or lead to another device. `nodes` are paths below `devices`; what is no device needs none. */
export function missingCharLinks(nodes: readonly string[], devices = '/dev'): readonly CharLink[] {
  return nodes.flatMap((node) => {
    const status = statSync(join(devices, node), { throwIfNoEntry: false });
    if (status?.isCharacterDevice() !== true) return [];
    const path = `char/${major(status.rdev)}:${minor(status.rdev)}`;
    const found = statSync(join(devices, path), { throwIfNoEntry: false });
    if (found?.isCharacterDevice() === true && found.rdev === status.rdev) return [];
    return [{ path, target: relative(dirname(path), node) }];
  });
}

/** Makes the links, in place of links to other devices. Throws if the directory cannot be written. */
export function makeCharLinks(links: readonly CharLink[], devices = '/dev'): void {
  for (const { path, target } of links) {
    const link = join(devices, path);
    mkdirSync(dirname(link), { recursive: true });
    if (isLink(link)) rmSync(link, { force: true });
    symlinkSync(target, link);
  }
}

/** A command that makes the links on the host. */
export function charLinkCommand(links: readonly CharLink[]): string {
  return links.map(({ path, target }) => `ln -sf ${target} /dev/${path}`).join('; ');
}

function isLink(path: string): boolean {
  try {
    readlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

/** The parts of a device number as Linux encodes it (makedev(3)). */
const major = (rdev: number): number => Number((BigInt(rdev) >> 8n) & 0xfffn) + Number((BigInt(rdev) >> 32n) & ~0xfffn);
const minor = (rdev: number): number => Number(BigInt(rdev) & 0xffn) + Number((BigInt(rdev) >> 12n) & 0xff_ff_ff_00n);
