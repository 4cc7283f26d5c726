import type { ClaimRef } from '../../gpu/claims/resource-claim.js';
import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { Rounds } from '../../host/rounds.js';
import { resourceClaimPath } from '../../kube/api-path.js';
import type { KubeApi } from '../../kube/client.js';
import { list, record, text, timestamp } from '../../kube/json.js';

/** The status of one device in a claim. */
export interface DeviceStatus {
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  /** Free fields for readers: amounts and present limits. */
  readonly data: Readonly<Record<string, string | number>>;
}

/** The devices of a claim that is prepared on this node. */
export interface PreparedStatus {
  readonly claim: ClaimRef;
  /** When it was prepared, milliseconds since 1970: a claim that is allocated again has lost its status. */
  readonly since: number;
  readonly devices: readonly DeviceStatus[];
}

export interface ClaimStatusOptions {
  readonly api: KubeApi;
  readonly prepared: () => readonly PreparedStatus[];
  readonly clock: Clock;
  readonly log: Log;
  readonly periodMs?: number;
}

const PERIOD_MS = 10_000;

/**
 * Writes the state of prepared devices to `status.devices` of their claims: at most once in a period, and only what
 * changed. Without the right to do so it stops; nothing else depends on it.
 */
export class ClaimStatus {
  readonly #options: ClaimStatusOptions;
  readonly #rounds: Rounds;
  /** The last written content, by claim UID. */
  readonly #written = new Map<string, string>();
  #isForbidden = false;

  constructor(options: ClaimStatusOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, options.periodMs ?? PERIOD_MS, () => this.#turn());
  }

  start(): void {
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  async #turn(): Promise<void> {
    const prepared = this.#options.prepared();
    const uids = new Set(prepared.map(({ claim }) => claim.uid));
    for (const uid of this.#written.keys()) if (!uids.has(uid)) this.#written.delete(uid);
    for (const entry of prepared) {
      const content = JSON.stringify([entry.since, entry.devices]);
      if (this.#isForbidden || this.#written.get(entry.claim.uid) === content) continue;
      if (await this.#write(entry)) this.#written.set(entry.claim.uid, content);
    }
  }

  /** Returns false if the write is to be repeated. */
  async #write({ claim, devices }: PreparedStatus): Promise<boolean> {
    const { api, clock, log } = this.#options;
    const path = resourceClaimPath(claim.namespace, claim.name);
    const read = await api.request({ method: 'GET', path });
    if (!read.ok) return read.code === 'not-found';
    const object = record(read.body);
    if (text(record(object.metadata).uid) !== claim.uid) return true;
    const status = record(object.status);
    const present = list(status.devices);
    const isOurs = (entry: unknown): boolean => text(record(entry).driver) === DRIVER_NAME;
    const ours = devices.map((device) => deviceObject(device, present.filter(isOurs), clock.now()));
    const body = { ...object, status: { ...status, devices: [...present.filter((one) => !isOurs(one)), ...ours] } };
    const answer = await api.request({ method: 'PUT', path: `${path}/status`, body });
    if (answer.ok || answer.code === 'not-found') return true;
    if (answer.code === 'forbidden') {
      this.#isForbidden = true;
      log.info({ reason: answer.message }, 'the state of devices is not written to claims: the right is missing');
    } else if (answer.code !== 'conflict')
      log.warn(
        { claim, reason: `${answer.code}: ${answer.message}` },
        'the state of a claim cannot be written; retrying',
      );
    return false;
  }
}

/** The entry of one device; the time of its condition stays if the device was ready before. */
function deviceObject({ pool, device, shareId, data }: DeviceStatus, present: readonly unknown[], now: number): object {
  const before = present.find(
    (entry) =>
      text(record(entry).pool) === pool &&
      text(record(entry).device) === device &&
      text(record(entry).shareID) === (shareId ?? ''),
  );
  const ready = list(record(before).conditions).find((condition) => text(record(condition).type) === 'Ready');
  return {
    driver: DRIVER_NAME,
    pool,
    device,
    ...(shareId === null ? {} : { shareID: shareId }),
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Prepared',
        message: '',
        lastTransitionTime: text(record(ready).lastTransitionTime) || timestamp(now),
      },
    ],
    data,
  };
}
