import type { Clock } from '../../host/clock.js';
import { draHealthV1alpha1Proto, draHealthV1Proto } from '../../rpc/proto.js';
import type { RpcCall } from '../../rpc/grpc-call.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import type { HealthSource } from './ports.js';

type HealthStream = RpcCall<object, object>;

/** The kubelet treats health that is older than 30 s as unknown. */
const PERIOD_MS = 10_000;
const MAX_MESSAGE = 1_024;

/** Streams the health of all devices to kubelets, which show it in pod status; in both versions of the service. */
export class HealthService {
  readonly services: readonly RpcService[];
  readonly #source: HealthSource;
  readonly #clock: Clock;
  readonly #streams = new Set<HealthStream>();
  #cancel: () => void = () => undefined;
  #leave: () => void = () => undefined;

  constructor(source: HealthSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
    const handlers = { NodeWatchResources: (stream: HealthStream) => this.#watch(stream) };
    this.services = [
      { definition: draHealthV1Proto().v1.DRAResourceHealth.service, handlers },
      { definition: draHealthV1alpha1Proto().v1alpha1.DRAResourceHealth.service, handlers },
    ];
  }

  start(): void {
    const sendAll = (): void => {
      for (const stream of this.#streams) this.#send(stream);
    };
    this.#cancel = this.#clock.every(PERIOD_MS, sendAll);
    this.#leave = this.#source.onChange(sendAll);
  }

  stop(): void {
    this.#cancel();
    this.#leave();
    for (const stream of this.#streams) stream.end();
    this.#streams.clear();
  }

  #watch(stream: HealthStream): void {
    this.#streams.add(stream);
    stream.onOver(() => this.#streams.delete(stream));
    this.#send(stream);
  }

  #send(stream: HealthStream): void {
    const now = String(Math.floor(this.#clock.now() / 1000));
    stream.send({
      devices: this.#source.health().map(({ pool, device, healthy, message }) => ({
        device: { pool_name: pool, device_name: device },
        health: healthy ? 'HEALTHY' : 'UNHEALTHY',
        last_updated_time: now,
        message: message.slice(0, MAX_MESSAGE),
      })),
    });
  }
}
