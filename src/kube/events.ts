import { createHash } from 'node:crypto';
import type { Clock } from '../host/clock.js';
import { eventsPath } from './api-path.js';
import { MERGE_PATCH, type KubeApi } from './client.js';
import { timestamp } from './json.js';
import type { WorkQueue, WorkResult } from './work-queue.js';

/** The object of an event. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty for a cluster-scoped object, such as a node. */
  readonly namespace: string;
  readonly name: string;
  /** UID of the object; for a node its name, as kubelets do. */
  readonly uid: string;
  /** Name of a container of the pod. */
  readonly container?: string;
}

/** A pod, or one of its containers, as the object of an event. */
export function podSubject(
  { namespace, name, uid }: Pick<EventSubject, 'namespace' | 'name' | 'uid'>,
  container?: string,
): EventSubject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    namespace,
    name,
    uid,
    container,
  };
}

/** A cluster-scoped object of the core API as the object of an event; its events are in the namespace `default`. */
export function clusterSubject(kind: 'Node' | 'Namespace', name: string): EventSubject {
  return { apiVersion: 'v1', kind, namespace: '', name, uid: name };
}

export interface EventNote {
  readonly type: 'Normal' | 'Warning';
  /** One word in CamelCase, which programs filter by. */
  readonly reason: string;
  /** The event as a sentence. */
  readonly message: string;
}

/** Components of this project that report events. */
export const AGENT_COMPONENT = 'gpu-manager';
export const QUOTA_COMPONENT = 'gpu-manager-quota';

/** The program that reports an event. */
export interface EventReporter {
  readonly component: string;
  /** Distinguishes the processes of a component. */
  readonly instance: string;
  /** Node of the reporter; null for a program of the whole cluster. */
  readonly host: string | null;
}

export interface EventsOptions {
  readonly api: KubeApi;
  readonly queue: WorkQueue;
  readonly reporter: EventReporter;
  readonly clock: Clock;
}

/** Accepts events and returns at once; `Events` writes them. */
export type EventRecorder = Pick<Events, 'record'>;

/** The API server allows at most 1 KiB for a message. */
const MAX_MESSAGE = 1_024;

/** An equal event within this time increases a count instead of creating an object. */
const SAME_MS = 600_000;
/** More different messages than this for one reason within that time are combined. */
const MAX_ALIKE = 10;
/** Limit for one object: this many at once, then one event every five minutes. */
const BURST = 25;
const REFILL_MS = 300_000;
/** How many events and objects are remembered for this. */
const MEMORY_LIMIT = 1_024;

interface Series {
  readonly name: string;
  readonly subject: EventSubject;
  readonly note: EventNote;
  readonly firstAt: number;
  lastAt: number;
  count: number;
  created: boolean;
}

interface Allowance {
  left: number;
  at: number;
}

/** Writes events in the background: equal events are counted in one object, and their rate is limited. */
export class Events {
  readonly #options: EventsOptions;
  readonly #series = new Map<string, Series>();
  readonly #alike = new Map<string, { at: number; messages: Set<string> }>();
  readonly #allowances = new Map<string, Allowance>();
  #suppressed = 0;

  constructor(options: EventsOptions) {
    this.#options = options;
  }

  /** Number of events that were not written because their object had too many. */
  get suppressed(): number {
    return this.#suppressed;
  }

  record(subject: EventSubject, note: EventNote): void {
    const now = this.#options.clock.now();
    if (!this.#allowed(subject, now)) {
      this.#suppressed += 1;
      return;
    }
    const told = this.#joined(subject, { ...note, message: note.message.slice(0, MAX_MESSAGE) }, now);
    const key = [subject.uid, subject.container ?? '', told.type, told.reason, told.message].join('\n');
    const known = this.#series.get(key);
    const series: Series =
      known !== undefined && now - known.lastAt < SAME_MS
        ? known
        : {
            name: eventName(subject, key, now),
            subject,
            note: told,
            firstAt: now,
            lastAt: now,
            count: 0,
            created: false,
          };
    series.count += 1;
    series.lastAt = now;
    this.#series.delete(key);
    this.#series.set(key, series);
    forgetOldest(this.#series);
    this.#options.queue.put(`event ${series.name}`, { attempt: () => this.#write(series) });
  }

  #allowed(subject: EventSubject, now: number): boolean {
    const known = this.#allowances.get(subject.uid) ?? { left: BURST, at: now };
    const refilled = Math.floor((now - known.at) / REFILL_MS);
    const left = Math.min(BURST, known.left + refilled);
    const allowed = left > 0;
    this.#allowances.delete(subject.uid);
    this.#allowances.set(subject.uid, { left: allowed ? left - 1 : 0, at: known.at + refilled * REFILL_MS });
    forgetOldest(this.#allowances);
    return allowed;
  }

  /** The event itself, or one event that summarizes many similar ones. */
  #joined(subject: EventSubject, note: EventNote, now: number): EventNote {
    const { component, instance } = this.#options.reporter;
    const key = [subject.uid, subject.container ?? '', note.type, note.reason].join('\n');
    const known = this.#alike.get(key);
    const alike = known !== undefined && now - known.at < SAME_MS ? known : { at: now, messages: new Set<string>() };
    const combine = alike.messages.size >= MAX_ALIKE && !alike.messages.has(note.message);
    if (!combine) alike.messages.add(note.message);
    this.#alike.delete(key);
    this.#alike.set(key, alike);
    forgetOldest(this.#alike);
    return combine
      ? { ...note, message: `more events of this kind; see the log of ${component} on ${instance}` }
      : note;
  }

  async #write(series: Series): Promise<WorkResult> {
    const path = eventsPath(namespaceOf(series.subject));
    const { count, lastAt } = series;
    if (!series.created) {
      const answer = await this.#options.api.request({ method: 'POST', path, body: this.#object(series) });
      // An earlier attempt, whose answer was lost, has created it.
      if (answer.ok || answer.code === 'already-exists') series.created = true;
      if (answer.ok) return 'done';
      if (answer.code !== 'already-exists') return answer.code === 'not-found' ? 'gone' : answer;
    }
    const body = { count, lastTimestamp: timestamp(lastAt) };
    const answer = await this.#options.api.request({
      method: 'PATCH',
      path: `${path}/${encodeURIComponent(series.name)}`,
      body,
      contentType: MERGE_PATCH,
    });
    if (answer.ok) return 'done';
    if (answer.code !== 'not-found') return answer;
    // Events expire after an hour: the next attempt creates a new one.
    series.created = false;
    return { ...answer, code: 'conflict' };
  }

  #object(series: Series): unknown {
    const { subject, note } = series;
    const { component, instance, host } = this.#options.reporter;
    const namespace = namespaceOf(subject);
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: series.name, namespace },
      involvedObject: {
        apiVersion: subject.apiVersion,
        kind: subject.kind,
        name: subject.name,
        uid: subject.uid,
        ...(subject.namespace === '' ? {} : { namespace }),
        ...(subject.container === undefined ? {} : { fieldPath: `spec.containers{${subject.container}}` }),
      },
      type: note.type,
      reason: note.reason,
      message: note.message,
      count: series.count,
      firstTimestamp: timestamp(series.firstAt),
      lastTimestamp: timestamp(series.lastAt),
      source: { component, ...(host === null ? {} : { host }) },
      reportingComponent: component,
      reportingInstance: instance,
    };
  }
}

/** Events of cluster-scoped objects are in the default namespace. */
function namespaceOf(subject: EventSubject): string {
  return subject.namespace === '' ? 'default' : subject.namespace;
}

/** The same name for every attempt, so that an attempt whose answer was lost is found again. */
function eventName(subject: EventSubject, key: string, now: number): string {
  const digest = createHash('sha256').update(`${key}\n${now}`).digest('hex').slice(0, 16);
  return `${subject.name.slice(0, 230)}.${digest}`;
}

function forgetOldest(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    if (map.size <= MEMORY_LIMIT) return;
    map.delete(key);
  }
}
