import { execFile, execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../harness/eventually.js';
import type { TestCluster } from './cluster.js';

const run = promisify(execFile);

const LOGIND = '/lib/systemd/systemd-logind';
const PROGRAMS = ['dbus-daemon', 'busctl', 'unshare'];
const SERVICE = 'org.freedesktop.login1';
const OBJECT = '/org/freedesktop/login1';
const INTERFACE = `${SERVICE}.Manager`;

/** Reason why no login manager can run here, or false. */
export function loginManagerSkipReason(): string | false {
  const missing = PROGRAMS.filter((name) => {
    try {
      execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
  if (!existsSync(LOGIND)) missing.push(LOGIND);
  return missing.length > 0 && `needs ${missing.join(', ')}`;
}

/**
 * systemd's login manager on a message bus of its own, as processes of a test cluster: the kubelet takes its inhibitor
 * lock there and waits for the signal that precedes a shutdown. It has an empty `/run`, and there is no init on its
 * bus, so that it can shut nothing down.
 */
export class LoginManager {
  readonly #cluster: TestCluster;
  readonly #address: string;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    this.#address = `unix:path=${join(cluster.directory, 'bus.sock')}`;
  }

  /** What a program needs in its environment to use this bus as that of the system. */
  get environment(): Readonly<Record<string, string>> {
    return { DBUS_SYSTEM_BUS_ADDRESS: this.#address };
  }

  async start(): Promise<void> {
    const { directory, processes } = this.#cluster;
    const file = join(directory, 'bus.conf');
    writeFileSync(file, this.#busFile());
    processes.start('bus', 'dbus-daemon', [`--config-file=${file}`, '--nofork', '--nopidfile']);
    await until('the message bus', async () => this.#busctl('list').then(() => true));
    const script = `mount -t tmpfs tmpfs /run && mkdir -p /run/systemd /run/udev && exec ${LOGIND}`;
    const variables = Object.entries(this.environment).map(([name, value]) => `${name}=${value}`);
    processes.start('login-manager', 'unshare', ['--mount', 'env', ...variables, 'sh', '-c', script]);
    await until('the login manager', async () => (await this.inhibitors()) !== '');
  }

  /** The locks that delay a shutdown, as `busctl` prints them. */
  inhibitors(): Promise<string> {
    return this.#busctl('call', SERVICE, OBJECT, INTERFACE, 'ListInhibitors');
  }

  /** Announces that the machine shuts down, or that it does not after all. */
  async announceShutdown(active: boolean): Promise<void> {
    await this.#busctl('emit', OBJECT, INTERFACE, 'PrepareForShutdown', 'b', String(active));
  }

  async #busctl(...args: readonly string[]): Promise<string> {
    return (await run('busctl', [`--address=${this.#address}`, ...args])).stdout.trim();
  }

  #busFile(): string {
    return `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>${this.#address}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
`;
  }
}
