import { systemClock } from '../host/clock.js';
import type { Part } from '../host/lifecycle.js';
import type { Log } from '../host/log.js';
import { Rounds } from '../host/rounds.js';
import {
  registerOnce,
  webhookIdentity,
  type Announced,
  type WebhookConfig,
} from '../kube/admission/webhook-identity.js';
import { writeConfiguration } from '../kube/admission/webhook-registration.js';
import { WebhookServer } from '../kube/admission/webhook-server.js';
import type { KubeApi } from '../kube/client.js';
import { tokenReaders } from '../kube/token-review.js';
import { openKubeClient } from '../kube/open-client.js';
import { ClaimTemplates } from './claim-templates.js';
import { reviewConfiguration } from './configuration-review.js';
import { reviewPod } from './pod-review.js';
import { WebhookMetrics } from './webhook-metrics.js';
import { conversionConfiguration, parametersConfiguration } from './claim-webhooks.js';

const WEBHOOKS = 'gpu-manager-claims';
const NAMES = { certificate: `${WEBHOOKS}-tls`, paths: `${WEBHOOKS}-webhook`, authority: WEBHOOKS };
const SWEEP_MS = 3_600_000;

export interface ClaimWebhookConfig extends WebhookConfig {
  /** Memory of a GPU, for amounts in percent; null if it is not known. */
  readonly gpuMemoryBytes: number | null;
}

/** The composition root of `gpu-manager claim-webhook`: the parts in the order of their start. */
export async function buildClaimWebhook(config: ClaimWebhookConfig, log: Log): Promise<readonly Part[]> {
  const clock = systemClock;
  const client = await openKubeClient(config.kubeconfig, clock);
  const { currentCertificate, callers, target, overlapMs } = webhookIdentity(config, NAMES, client, clock, log);
  const templates = new ClaimTemplates(client, clock, log);
  const metrics = new WebhookMetrics();
  const { address, port, probePort, gpuMemoryBytes } = config;
  const conversion = { api: client, templates, gpuMemoryBytes };
  const certificate = await currentCertificate();
  const register = async (): Promise<void> => {
    if (target === null) return;
    await writeConfigurations(client, async () => ({
      target: target(),
      prefix: callers.prefix,
      authority: (await currentCertificate()).authority,
    }));
  };
  const server = new WebhookServer({
    address,
    port,
    probePort,
    certificate,
    currentCertificate,
    overlapMs,
    callers,
    readers: tokenReaders(config.tokenReview, client, clock),
    reviews: {
      '/parameters': async (review) => reviewConfiguration(review),
      '/pods': (review) => reviewPod(review, true, conversion),
      '/requests': (review) => reviewPod(review, false, conversion),
    },
    notReady: () => null,
    decided: (path, response, seconds) => metrics.decided(path, response, seconds),
    metrics: metrics.page,
    register,
    log,
    clock,
  });
  const sweeps = new Rounds(clock, SWEEP_MS, () => templates.sweep());
  return [
    { name: 'api-client', start: async () => undefined, stop: async () => client.close() },
    {
      name: 'webhooks',
      start: async () => {
        await server.start();
        await register();
        server.keepCertificate();
        sweeps.start();
        log.info({ address, port: server.port, registration: config.registration }, 'the webhooks of claims started');
      },
      stop: async () => {
        await sweeps.stop();
        await server.stop();
      },
    },
  ];
}

/** The run of a Job that registers the webhooks of `claim-webhook --register=job`. Rejects if the API server fails. */
export async function registerClaimWebhooks(
  config: WebhookConfig,
  log: Log,
  connect = () => openKubeClient(config.kubeconfig, systemClock),
): Promise<void> {
  const client = await connect();
  try {
    await registerOnce(config, NAMES, client, systemClock, log, (announced) => writeConfigurations(client, announced));
    log.info({}, 'the webhooks of claims are registered');
  } finally {
    client.close();
  }
}

async function writeConfigurations(api: KubeApi, announced: () => Promise<Announced>): Promise<void> {
  for (const [kind, configurationOf] of [
    ['ValidatingWebhookConfiguration', parametersConfiguration],
    ['MutatingWebhookConfiguration', conversionConfiguration],
  ] as const)
    await writeConfiguration(api, kind, WEBHOOKS, async () =>
      configurationOf({ name: WEBHOOKS, ...(await announced()) }),
    );
}
