import type { KubeApi } from '../kube/client.js';
import type { QuotaLog } from './log.js';

/** What an event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** Absent for objects of the cluster: their events live in the default one. */
  readonly namespace?: string;
}

/** What is told of it. */
export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

const COMPONENT = 'gpu-manager-quota';

/** Writes events. One that cannot be written is logged, and nothing else: they are for people, and live for an hour. */
export class Events {
  readonly #api: KubeApi;
  readonly #log: QuotaLog;
  readonly #now: () => number;

  constructor(api: KubeApi, log: QuotaLog, now: () => number) {
    this.#api = api;
    this.#log = log;
    this.#now = now;
  }

  async write(subject: EventSubject, { type, reason, message }: EventText): Promise<void> {
    const at = `${new Date(this.#now()).toISOString().slice(0, 19)}Z`;
    const namespace = subject.namespace ?? 'default';
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${subject.name}.`, namespace },
      involvedObject: subject,
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: at,
      lastTimestamp: at,
      source: { component: COMPONENT },
    };
    const answer = await this.#api.request({
      method: 'POST',
      path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`,
      body,
    });
    if (!answer.ok)
      this.#log.warn(
        { kind: subject.kind, subject: subject.name, code: answer.code, reason: answer.message },
        'writing an event failed',
      );
  }
}
