import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { socketIdentity } from '../../host/unix-socket.js';
import { draV1Proto, pluginRegistrationProto } from '../../rpc/proto.js';
import { UnixRpcServer, type RpcService } from '../../rpc/rpc-server.js';
import { callUnary, unary } from '../../rpc/unary.js';

/** Preferred version first: the kubelet uses the first one that it supports. */
const SUPPORTED_VERSIONS = ['v1.DRAPlugin', 'v1.DRAResourceHealth', 'v1alpha1.DRAResourceHealth'];

const DRIVER_SOCKET = 'dra.sock';
const REGISTRATION_SOCKET = `${DRIVER_NAME}-reg.sock`;

const LOOK_PERIOD_MS = 5_000;
/** Delay after a refused registration. */
const RETRY_MS = 10_000;
/** A kubelet that watches the directory registers the driver within seconds. */
const SILENCE_MS = 60_000;

export interface KubeletPluginOptions {
  /** The kubelet's plugins_registry directory. */
  readonly registryPath: string;
  /** Directory of the driver's own socket. */
  readonly driverPath: string;
  readonly services: readonly RpcService[];
  readonly clock: Clock;
  readonly log: Log;
}

/** The paths of both sockets, for checks before the start. */
export function kubeletPluginSockets(
  registryPath: string,
  driverPath: string,
): { readonly registration: string; readonly driver: string } {
  return { registration: join(registryPath, REGISTRATION_SOCKET), driver: join(driverPath, DRIVER_SOCKET) };
}

/**
 * The driver's sockets. The kubelet watches the directory of the registration socket, calls it once, and from then on
 * calls the driver's socket. Both sockets are created again when one is removed, or when the registration is refused.
 */
export class KubeletPlugin {
  readonly #options: KubeletPluginOptions;
  readonly #driver: UnixRpcServer;
  readonly #paths: ReturnType<typeof kubeletPluginSockets>;
  #registration: UnixRpcServer | null = null;
  #identities: readonly (string | null)[] = [];
  #registered = false;
  #asked = false;
  #cancels: (() => void)[] = [];
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: KubeletPluginOptions) {
    this.#options = options;
    this.#paths = kubeletPluginSockets(options.registryPath, options.driverPath);
    this.#driver = new UnixRpcServer(this.#paths.driver, options.services);
  }

  /** True from the kubelet's confirmation until the socket is created again. */
  get registered(): boolean {
    return this.#registered;
  }

  /** Opens the driver's socket and checks that it answers, before the kubelet can find it. */
  async serve(): Promise<void> {
    await mkdir(dirname(this.#paths.driver), { recursive: true, mode: 0o750 });
    await this.#driver.start();
    const { DRAPlugin } = draV1Proto().k8s.io.kubelet.pkg.apis.dra.v1;
    const client = new DRAPlugin(`unix:${this.#paths.driver}`, credentials.createInsecure());
    try {
      await callUnary(client, 'NodePrepareResources', { claims: [] }, 5_000);
    } finally {
      client.close();
    }
  }

  /** Opens the registration socket, by which the kubelet finds the driver. */
  async register(): Promise<void> {
    const { clock, log } = this.#options;
    await this.#serveRegistration();
    this.#cancels.push(clock.every(LOOK_PERIOD_MS, () => void this.#look()));
    this.#cancels.push(
      clock.after(SILENCE_MS, () => {
        if (!this.#asked)
          log.warn(
            { socket: this.#paths.registration },
            `the kubelet has not asked for ${this.#paths.registration}: check that DynamicResourceAllocation is enabled and that this is its plugins_registry`,
          );
      }),
    );
  }

  /** The registration socket is closed first, so that the kubelet learns of the end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#cancels) cancel();
    await this.#looking;
    await this.#registration?.stop();
    await this.#driver.stop();
  }

  async #serveRegistration(): Promise<void> {
    await this.#registration?.stop();
    this.#registered = false;
    const { Registration } = pluginRegistrationProto().pluginregistration;
    this.#registration = new UnixRpcServer(this.#paths.registration, [
      {
        definition: Registration.service,
        handlers: {
          GetInfo: unary(async () => {
            this.#asked = true;
            return {
              type: 'DRAPlugin',
              name: DRIVER_NAME,
              endpoint: this.#paths.driver,
              supported_versions: SUPPORTED_VERSIONS,
            };
          }),
          NotifyRegistrationStatus: unary(
            async (status: { readonly plugin_registered: boolean; readonly error: string }) => {
              this.#heard(status.plugin_registered, status.error);
              return {};
            },
          ),
        },
      },
    ]);
    await this.#registration.start();
    this.#identities = await this.#present();
  }

  #heard(registered: boolean, error: string): void {
    const { clock, log } = this.#options;
    this.#registered = registered;
    if (registered) log.info({ driver: DRIVER_NAME }, 'registered with the kubelet as a DRA driver');
    else {
      log.error(
        { driver: DRIVER_NAME, reason: error },
        'the kubelet refused the DRA driver; the agent creates the socket again',
      );
      this.#cancels.push(clock.after(RETRY_MS, () => void this.#look(true)));
    }
  }

  #present(): Promise<(string | null)[]> {
    return Promise.all([this.#paths.registration, this.#paths.driver].map((path) => socketIdentity(path)));
  }

  #look(anew = false): Promise<void> {
    this.#looking = this.#looking
      .then(async () => {
        if (this.#stopped) return;
        const present = await this.#present();
        if (!anew && present.every((identity, at) => identity !== null && identity === this.#identities[at])) return;
        if (present[1] !== this.#identities[1]) {
          await this.#driver.stop();
          await this.#driver.start();
        }
        await this.#serveRegistration();
      })
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'the sockets of the DRA driver cannot be created; retrying'),
      );
    return this.#looking;
  }
}
