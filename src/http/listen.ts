import type { Server } from 'node:net';
import { StartupError } from '../host/startup-error.js';

/** All addresses of the machine, of both families: IPv4 arrives at the same socket. */
export const ALL_ADDRESSES = '::';

/** What a machine without IPv6 answers (`ipv6.disable=1`, or a kernel built without it). */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

/** Another program listens on the address. */
export class AddressInUse extends StartupError {}

/**
 * Makes the server listen; on a machine without IPv6, `ALL_ADDRESSES` are those of IPv4. Rejects with a `StartupError`
 * that names the place and the reason.
 */
export async function listen(server: Server, port: number, address: string): Promise<void> {
  try {
    await listenOn(server, port, address);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (address !== ALL_ADDRESSES || !NO_IPV6.includes(code))
      throw listenProblem(address, port, error as NodeJS.ErrnoException);
    await listen(server, port, '0.0.0.0');
  }
}

function listenOn(server: Server, port: number, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function listenProblem(address: string, port: number, { code, message }: NodeJS.ErrnoException): StartupError {
  const place = `cannot listen on ${address.includes(':') ? `[${address}]` : address}:${port}`;
  if (code === 'EADDRINUSE')
    return new AddressInUse(`${place}: another program listens there; stop it or choose another port`);
  const why =
    code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND'
      ? 'this machine has no such address'
      : code === 'EACCES'
        ? 'ports below 1024 need root'
        : message;
  return new StartupError(`${place}: ${why}`);
}
