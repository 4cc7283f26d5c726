import { Agent, request } from 'node:https';
import type { Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { Metrics } from '../../http/metrics.js';
import type { IssuedCertificate } from '../../kube/admission/certificate-secret.js';
import { ANY_CALLER } from '../../kube/admission/review-callers.js';
import { WebhookServer } from '../../kube/admission/webhook-server.js';
import { GROUP_LABEL } from '../../manifests/group-label.js';
import { createEngine, type EvaluationOptions } from '../../quota/index.js';
import { NamespaceAccess } from '../admission/namespace-access.js';
import { WorkloadReview } from '../admission/workload-review.js';
import type { ServedKind } from '../kinds.js';
import { KubeStore } from '../store/kube-store.js';
import { WorkloadReader } from '../workload-reader.js';
import { RehearsedApi } from './rehearsed-api.js';

export interface RehearsalOptions {
  readonly certificate: IssuedCertificate;
  readonly evaluation: () => EvaluationOptions;
  readonly kinds: () => readonly ServedKind[];
  readonly metrics: Metrics;
  readonly log: StructuredLog;
  readonly clock: Clock;
  /** Number of reviews. */
  readonly reviews: number;
  /** Ends the rehearsal early. */
  readonly signal: AbortSignal;
}

const GROUPS = 8;
/** Reviews at a time. */
const CONCURRENCY = 16;
/** A rehearsal takes no longer: a machine that is this busy gets a replica that is not as fast yet. */
const LONGEST_MS = 15_000;

/**
 * Reviews synthetic workloads before the first real one, so that code is compiled by then: otherwise the first reviews
 * take many times as long as later ones. They take the way of real ones, on a loopback port of their own with the same
 * certificate, but are charged to an engine and to ledgers that exist in memory only. Nothing of the cluster is read or
 * written, and no metric counts them. Never rejects: a rehearsal that fails is logged.
 */
export async function rehearse(options: RehearsalOptions): Promise<void> {
  const { log, clock, certificate, metrics, reviews, signal } = options;
  const started = performance.now();
  const agent = new Agent({
    keepAlive: true,
    // The server is this process, and its certificate has other names than the loopback address.
    ca: certificate.authority,
    checkServerIdentity: () => undefined,
  });
  let server: WebhookServer | null = null;
  try {
    const review = await rehearsedReview(options);
    server = new WebhookServer({
      address: '127.0.0.1',
      port: 0,
      probePort: null,
      certificate,
      callers: ANY_CALLER,
      reviews: { '/workloads': (asked) => review.decide(asked) },
      notReady: () => null,
      decided: () => undefined,
      metrics,
      register: async () => undefined,
      log,
      clock,
    });
    await server.start();
    const { port } = server;
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < reviews && !signal.aborted && performance.now() - started < LONGEST_MS)
        await ask(port, agent, reviewOf(next++));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    log.info({ reviews: next, ms: Math.round(performance.now() - started) }, 'rehearsed reviews');
  } catch (error) {
    log.warn({ err: error }, 'the rehearsal of reviews failed; the first reviews will be slow');
  } finally {
    agent.destroy();
    await server?.stop();
  }
}

async function rehearsedReview({ evaluation, kinds, clock }: RehearsalOptions): Promise<WorkloadReview> {
  const api = new RehearsedApi();
  const engine = await createEngine({
    store: new KubeStore({ api, clock }),
    clock: () => clock.now(),
    policy: { expiresReservations: false },
  });
  for (let group = 0; group < GROUPS; group++)
    await engine.createGroup({ name: `rehearsal-${group}`, hard: { 'limits.cpu': 1_000_000, pods: 1_000_000 } });
  const access = new NamespaceAccess({ api, observed: () => null, isOpenByDefault: true });
  return new WorkloadReview({
    engine,
    reader: new WorkloadReader({ api, evaluation, kinds }),
    // The groups of the rehearsal are in its ledger only.
    access: { missing: async () => null, refusal: (group, namespace) => access.refusal(group, namespace) },
    endEarlier: async () => undefined,
    settleLimits: async () => undefined,
    withRunning: (demand) => demand,
    observedVersion: () => null,
    admitted: () => undefined,
    waiting: null,
    reservationMs: 60_000,
  });
}

/** The AdmissionReview of a Deployment. */
function reviewOf(index: number): string {
  const name = `rehearsed-${index}`;
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: name,
      operation: 'CREATE',
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      namespace: 'rehearsal',
      name,
      userInfo: { username: 'rehearsal' },
      object: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: {
          name,
          namespace: 'rehearsal',
          uid: name,
          labels: { [GROUP_LABEL]: `rehearsal-${index % GROUPS}`, app: name },
        },
        spec: {
          replicas: 1 + (index % 3),
          selector: { matchLabels: { app: name } },
          template: {
            metadata: { labels: { app: name } },
            spec: {
              containers: [
                {
                  name: 'main',
                  image: 'rehearsal',
                  resources: { requests: { cpu: '500m', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } },
                },
              ],
            },
          },
        },
      },
    },
  });
}

function ask(port: number, agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, path: '/workloads', method: 'POST', agent, timeout: LONGEST_MS },
      (response) => {
        response.resume();
        response.once('error', reject);
        response.once('end', () =>
          response.statusCode === 200
            ? resolve()
            : reject(new Error(`expected 200 for a review, found ${response.statusCode ?? 0}`)),
        );
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('a review got no answer')));
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
