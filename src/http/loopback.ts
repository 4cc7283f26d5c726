import { isIP } from 'node:net';

/** True for an address that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/u.test(address);
}

/**
 * True when a request's Host may name a server on loopback: an address or localhost. Any other name resolves to this
 * machine only because a foreign web page wants to read it.
 */
export function namesLoopback(host: string | undefined): boolean {
  if (host === undefined) return true;
  const name = host
    .replace(/:\d+$/u, '')
    .replace(/^\[(.*)\]$/u, '$1')
    .toLowerCase();
  return name === 'localhost' || isIP(name) !== 0;
}
