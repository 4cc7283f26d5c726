import { test } from 'tap';
import { KubeStore } from '../../../src/quota-controller/store/kube-store.js';
import { LEDGERS_PATH, TRANSACTIONS_PATH } from '../../../src/kube/quota/names.js';
import { storeContract, type Place } from '../../quota/store/contract.js';
import { hastyClock } from '../../kube/hasty-clock.js';
import { clientTo, emptied, installDefinitions, quotaServer, REAL_KUBECONFIG, realClient } from '../setting.js';

for (const tailChars of [undefined, 0])
  storeContract(
    `programmable API server, ${tailChars === 0 ? 'every change in a segment' : 'short ledgers'}`,
    async (): Promise<Place> => {
      const server = await quotaServer();
      const client = clientTo(server.url);
      return {
        open: async () => new KubeStore({ api: client, clock: hastyClock, tailChars }),
        destroy: async () => {
          client.close();
          await server.stop();
        },
      };
    },
    true,
  );

if (REAL_KUBECONFIG === undefined)
  test('real API server', { skip: 'KUBECONFIG_E2E names no kubeconfig of a real cluster' }, (t) => t.end());
else {
  const client = await realClient();
  await installDefinitions(client);
  storeContract(
    'real API server',
    async (): Promise<Place> => {
      await emptied(client, LEDGERS_PATH);
      await emptied(client, TRANSACTIONS_PATH);
      return { open: async () => new KubeStore({ api: client, clock: hastyClock }), destroy: async () => undefined };
    },
    true,
  );
  test('the end of the real API server', (t) => {
    client.close();
    t.end();
  });
}
