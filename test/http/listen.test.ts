import { readdirSync, readFileSync } from 'node:fs';
import { connect, createServer, Server, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { ALL_ADDRESSES, listen } from '../../src/http/listen.js';

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

async function listening(t: Test, server: Server, address: string): Promise<number> {
  await listen(server, 0, address);
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

const answers = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ host, port }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

/** As on a machine without IPv6. */
class ServerOfIpv4 extends Server {
  override listen(...args: unknown[]): this {
    if (args[1] !== ALL_ADDRESSES) return super.listen(...(args as [number, string, () => void]));
    setImmediate(() => this.emit('error', Object.assign(new Error('no IPv6'), { code: 'EAFNOSUPPORT' })));
    return this;
  }
}

test('all addresses are those of both families', { skip: hasIpv6 ? false : 'this machine has no IPv6' }, async (t) => {
  const port = await listening(t, createServer(), ALL_ADDRESSES);
  t.ok(await answers('127.0.0.1', port));
  t.ok(await answers('::1', port));
});

test('without IPv6 all addresses are those of IPv4', async (t) => {
  t.ok(await answers('127.0.0.1', await listening(t, new ServerOfIpv4(), ALL_ADDRESSES)));
});

test('an address that the machine lacks is refused with its name', async (t) => {
  await t.rejects(listen(createServer(), 0, '192.0.2.1'), { message: /cannot listen on 192\.0\.2\.1:0: .*no such/ });
  if (hasIpv6)
    await t.rejects(listen(createServer(), 0, '2001:db8::1'), { message: /cannot listen on \[2001:db8::1\]:0: / });
});

test('no manifest and no default listens for IPv4 alone', (t) => {
  const files = (directory: string): string[] =>
    readdirSync(packageFile(directory), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(ya?ml|json|md)$/.test(path))
      .map((path) => join(directory, path));
  const paths = ['daemonset.yaml', 'Dockerfile', 'docs/reference/flags.md', ...files('etc'), ...files('charts')];
  t.same(
    paths.filter((path) => readFileSync(packageFile(path), 'utf8').includes('0.0.0.0')),
    [],
  );
  t.end();
});
