import { InvalidArgumentError, Option } from 'commander';

/** A TCP port; with 0, the system chooses one. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > 65_535) throw new InvalidArgumentError('Expected a port from 0 to 65535.');
  return value;
}

export function portOption(flags: string, description: string, port?: number): Option {
  const option = new Option(flags, description).argParser(portNumber);
  return port === undefined ? option : option.default(port);
}

/** `127.0.0.1:3456`, `[::1]:3456`, or `:3456` for all addresses. */
export function hostAndPort(text: string): { readonly host: string; readonly port: number } {
  const parts = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):(\d{1,5})$/u.exec(text);
  if (parts === null) throw new InvalidArgumentError('Expected host:port, such as 127.0.0.1:3456 or [::1]:3456.');
  return { host: parts[1] ?? (parts[2] === '' ? '::' : (parts[2] ?? '::')), port: portNumber(parts[3] ?? '') };
}

/** The URL of an HTTP server, without user name, query or fragment. */
export function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/u.test(url.protocol) || /[?#@]/u.test(text))
    throw new InvalidArgumentError(
      'Expected a URL such as https://prometheus.monitoring:9090, without user name and query.',
    );
  return url;
}

/** Seconds within two bounds, with or without the unit `s`. */
export function secondsBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text.replace(/s$/u, ''));
    if (text === '' || !(value >= least && value <= most))
      throw new InvalidArgumentError(`Expected seconds from ${least} to ${most}.`);
    return value;
  };
}

/** A whole number within two bounds. */
export function wholeNumberBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
    return value;
  };
}
