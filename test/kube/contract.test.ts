import type { Test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { KubeClient } from '../../src/kube/client.js';
import { kubeconfigCredentials } from '../../src/kube/credentials.js';
import { apiContract } from './contract.js';
import { apiServer, clientOf } from './setting.js';

apiContract({ name: 'programmable', connect: async (t) => clientOf(t, (await apiServer(t)).url) });

const kubeconfig = process.env.KUBECONFIG_E2E;
const minor = process.env.KUBECONFIG_E2E_MINOR;

async function connectReal(t: Test): Promise<KubeClient> {
  const client = new KubeClient({
    credentials: await kubeconfigCredentials(kubeconfig ?? '', systemClock),
    clock: systemClock,
    userAgent: 'gpu-manager/contract',
  });
  t.teardown(() => client.close());
  return client;
}

apiContract({
  name: 'real',
  real: true,
  ...(minor === undefined ? {} : { minor: Number(minor) }),
  connect: kubeconfig === undefined ? null : connectReal,
  why: 'KUBECONFIG_E2E names no kubeconfig of a real cluster',
});
