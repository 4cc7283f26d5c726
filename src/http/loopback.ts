import { isIP } from 'node:net';

/** True for a loopback address, which only this machine reaches. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/u.test(address);
}

/**
 * True when a request's Host may name a loopback server: an address or localhost. Any other name that resolves to this
 * machine belongs to a foreign web page that tries to read it.
 */
export function namesLoopback(host: string | undefined): boolean {
  if (host === undefined) return true;
  const name = host
    .replace(/:\d+$/u, '')
    .replace(/^\[(.*)\]$/u, '$1')
    .toLowerCase();
  return name === 'localhost' || isIP(name) !== 0;
}
