import { createLog } from '../../src/host/log.js';
import { Lifecycle } from '../../src/host/lifecycle.js';
import { buildQuotaServe } from '../../src/quota-controller/run.js';
import { clientTo } from '../../test/quota-controller/setting.js';

/**
 * The quota service against the API server whose URL is the first argument, on the port of the second, until SIGTERM.
 * As in a pod, it does without the client library that reads kubeconfigs, which takes 70 MB.
 */
const [url = '', port = ''] = process.argv.slice(2);
const log = createLog('error');
const parts = await buildQuotaServe(
  {
    address: '127.0.0.1',
    port: Number(port),
    probePort: null,
    kubeconfig: null,
    namespace: 'default',
    service: '',
    url: null,
    tls: null,
    clients: null,
    registration: 'none',
    tokenReview: false,
    unlabelled: 'Ignore',
    openGroups: null,
    identity: null,
    audit: null,
    kueue: false,
    refreshMs: 60_000,
    leaseMs: 15_000,
    arbitrator: null,
  },
  log,
  async () => clientTo(url),
);
const lifecycle = new Lifecycle(parts, log);
await lifecycle.start();
process.once('SIGTERM', () => void lifecycle.stop().then(() => process.exit()));
