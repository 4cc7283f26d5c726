/** A user of one namespace who runs a pod that looks like the agent of a node. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'tap';
import { agentPods } from '../../src/kube/agent-pods.js';
import { agentObject, nodeObject } from '../console/cluster-objects.js';
import { runningConsole } from '../console/fixture.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { clientOf, openAccess } from '../kube/setting.js';

/** The agent of a node, as its DaemonSet makes it, with changes. */
function posing(metadata: object, spec: object = {}): KubeObject {
  const agent = agentObject('gpu-node-1');
  return {
    ...agent,
    metadata: { ...agent.metadata, ...metadata },
    spec: { ...(agent.spec as object), ...spec },
  };
}

const POSING: Readonly<Record<string, KubeObject>> = {
  'in another namespace': posing({ namespace: 'a-team', name: 'gpu-manager-x' }),
  'without a DaemonSet': posing({ ownerReferences: [] }),
  'of a ReplicaSet': posing({
    ownerReferences: [{ kind: 'ReplicaSet', name: 'gpu-manager', uid: 'r', controller: true }],
  }),
  'under another service account': posing({}, { serviceAccountName: 'default' }),
};

for (const [how, pod] of Object.entries(POSING))
  test(`a pod ${how} that looks like an agent is never asked`, async (t) => {
    let asked = 0;
    const evil = createServer((_request, response) => {
      asked += 1;
      response.end(JSON.stringify({ node: 'EVIL', cards: [], allocations: [] }));
    }).listen(0, '127.0.0.1');
    t.teardown(() => void evil.close());
    const console = await runningConsole(t, (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
      server.seed('pods', pod);
      server.reach = () => (evil.address() as AddressInfo).port;
    });
    const answer = await (await console.get('/api/node?name=gpu-node-1')).text();
    t.match(answer, /no agent runs on gpu-node-1/u);
    const client = clientOf(t, console.server.url, { credentials: openAccess(console.server.url, () => 'operator') });
    t.equal((await agentPods(client, 'kube-system')).size, 0, 'kubectl gpu finds no agent either');
    t.equal(asked, 0);
  });
