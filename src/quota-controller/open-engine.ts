import type { Clock } from '../host/clock.js';
import type { EventRecorder } from '../kube/events.js';
import { createEngine, type QuotaEngine } from '../quota/index.js';
import { EngineClock, clockWarning, type ClockState } from './clock/engine-clock.js';
import type { QuotaPolicy } from './policy/policy-object.js';
import type { QuotaServiceOptions } from './service-options.js';
import { KubeStore } from './store/kube-store.js';

export interface OpenEngineOptions extends Pick<QuotaServiceOptions, 'api' | 'log' | 'identity' | 'serverTime'> {
  readonly policy: QuotaPolicy;
  readonly webhookName: string;
  readonly events: EventRecorder;
  /** This machine's clock. */
  readonly clock: Clock;
}

/** An engine with the ledgers of the API server. */
export interface OpenEngine {
  readonly engine: QuotaEngine;
  readonly store: KubeStore;
  readonly engineClock: EngineClock;
  /** The engine's time with this machine's timers. */
  readonly clusterClock: Clock;
}

/** How long stopped pods are kept in the ledger for late events. */
const LATE_EVENTS_MS = 600_000;

/** Reads the ledgers. Rejects if the API server does not answer. */
export async function openEngine(options: OpenEngineOptions): Promise<OpenEngine> {
  const { api, clock, policy } = options;
  const store = new KubeStore({ api, clock });
  const engineClock = clockOf(options, store);
  const { families, strictTypes } = policy;
  const engine = await createEngine({
    store,
    clock: () => engineClock.now(),
    policy: { lateEventsMs: LATE_EVENTS_MS, families, strictTypes, expiresReservations: false },
  });
  engineClock.continueFrom(engine.now);
  return { engine, store, engineClock, clusterClock: { ...clock, now: () => engineClock.now() } };
}

/** The engine's clock, which reports a difference from the API server's time in the log and as an event. */
function clockOf(options: OpenEngineOptions, store: KubeStore): EngineClock {
  const { clock, serverTime } = options;
  return new EngineClock({
    serverTime: () => (serverTime === undefined ? clock.now() : serverTime.now()),
    localTime: () => clock.now(),
    ledgerTime: () => store.latestTime,
    changed: (state) => reportClock(options, state),
  });
}

function reportClock({ log, identity, events, webhookName }: OpenEngineOptions, state: ClockState): void {
  if (state.is === 'inSync') return log.info({}, "the engine's time is the API server's again");
  const { reason, message } = clockWarning(state);
  log.warn({ byMs: Math.round(state.byMs), identity }, message);
  // Recorded on the webhook configuration, which exists as long as the service.
  const webhooks = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    namespace: '',
    name: webhookName,
    uid: webhookName,
  };
  events.record(webhooks, { type: 'Warning', reason, message });
}
