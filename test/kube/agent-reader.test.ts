import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'tap';
import { SelfSigned } from '../../src/http/self-signed.js';
import { TokenAccess } from '../../src/http/token-access.js';
import { silentLog } from '../../src/host/log.js';
import { agentPods, readAgentPod } from '../../src/kube/agent-pods.js';
import { AgentReader, READER_ACCOUNT } from '../../src/kube/agent-reader.js';
import { AGENT_AUDIENCE } from '../../src/kube/token-review.js';
import { gpu, node, served, viewOf } from '../agent/display/fixture.js';
import { readAccountToken } from '../harness/api-server/account-token.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { ManualClock } from '../manual-clock.js';
import { apiServer, clientOf, openAccess } from './setting.js';

const ARGS = ['run', '--query-addr=::', '--query-port=5678', '--token-review=true', '--tls-self-signed=true'];

function agentObject(name: string, nodeName: string, changes: { args?: string[]; ready?: boolean } = {}): KubeObject {
  const { args = ARGS, ready = true } = changes;
  return {
    metadata: {
      name,
      namespace: 'kube-system',
      labels: { 'app.kubernetes.io/name': 'gpu-manager' },
      ownerReferences: [{ kind: 'DaemonSet', name: 'gpu-manager', uid: 'd', controller: true }],
    },
    spec: { nodeName, serviceAccountName: 'gpu-manager', containers: [{ name: 'gpu-manager', args }] },
    status: {
      phase: 'Running',
      containerStatuses: [
        ready
          ? { name: 'gpu-manager', ready, state: { running: {} } }
          : { name: 'gpu-manager', ready, state: { waiting: { reason: 'CrashLoopBackOff' } } },
      ],
    },
  };
}

test('the pod of an agent says where it listens, whether with TLS, and whether it asks for tokens', (t) => {
  const read = (args: string[]) => readAgentPod(agentObject('a', 'node1', { args }));
  t.match(read(ARGS), { node: 'node1', scheme: 'https', port: 5678, asksForToken: true, isReady: true, problem: '' });
  t.match(read(['run']), { scheme: 'http', port: 5678, asksForToken: false });
  t.match(read(['run', '--query_port', '80', '--tls-cert-file', '/c', '--token-review=false']), {
    scheme: 'https',
    port: 80,
    asksForToken: false,
  });
  t.match(readAgentPod(agentObject('a', 'node1', { ready: false })), { isReady: false, problem: 'CrashLoopBackOff' });
  t.equal(
    readAgentPod({ metadata: { name: 'x' }, spec: { nodeName: 'node1', containers: [{ name: 'extender' }] } }),
    null,
  );
  t.end();
});

test('a reader gets the documents of an agent through the API server, with a token that only agents accept', async (t) => {
  const clock = new ManualClock();
  const asked: string[] = [];
  const access = new TokenAccess(async (token, path) => {
    const claims = readAccountToken(token);
    if (claims === null || !claims.aud.includes(AGENT_AUDIENCE)) return { kind: 'unknown' };
    asked.push(`${claims.sub} ${path}`);
    return path === '/version' ? { kind: 'forbidden', user: claims.sub } : { kind: 'allowed' };
  }, clock);
  const certificate = new SelfSigned({ names: ['node1'], clock, log: silentLog() });
  const view = viewOf(() => node({ gpus: [gpu(0)] }));
  const { server: agent } = await served(t, view, { access, certificate });

  const server = await apiServer(t, { tokens: new Map([['secret', 'jane']]), now: () => clock.now() });
  server.reach = ({ name, port }) => (name === 'agent-1' && port === 5678 ? agent.port : null);
  server.seed('pods', agentObject('agent-1', 'node1'));
  server.seed('pods', agentObject('agent-2', 'node2'));
  server.seed('pods', agentObject('agent-3', 'node3', { ready: false }));
  server.seed('serviceaccounts', { metadata: { name: READER_ACCOUNT, namespace: 'kube-system' } });
  const api = clientOf(t, server.url, { credentials: openAccess(server.url, () => 'secret') });

  const agents = await agentPods(api, 'kube-system');
  t.same([...agents.keys()], ['node1', 'node2', 'node3']);
  const [first, second, third] = [...agents.values()] as [never, never, never];
  const reader = new AgentReader({ api, clock });
  t.match(await reader.read(first, '/api/node'), { ok: true, body: { node: 'node1', gpus: [{ index: 0 }] } });
  t.match(await reader.read(first, '/api/events', { query: { after: '3' } }), { ok: true, body: { events: [] } });
  t.same(asked, [
    'system:serviceaccount:kube-system:gpu-manager-reader /api/node',
    'system:serviceaccount:kube-system:gpu-manager-reader /api/events',
  ]);
  const minted = () => server.requests.filter(({ subresource }) => subresource === 'token').length;
  t.equal(minted(), 1, 'one token serves several documents');
  clock.advance(600_000);
  t.match(await reader.read(first, '/api/node'), { ok: true });
  t.equal(minted(), 2, 'and is replaced before it expires');

  t.match(await reader.read(first, '/api/none'), { ok: false, by: 'agent', message: /agent-1 has no \/api\/none/ });
  t.match(await reader.read(first, '/version'), {
    ok: false,
    by: 'agent',
    message: /may not get the non-resource URL/,
  });
  t.match(await reader.read(second, '/api/node'), {
    ok: false,
    by: 'proxy',
    code: 'unreachable',
    message: /does not reach the agent kube-system\/agent-2 on port 5678: .*connection refused; it must listen/,
  });
  t.match(await reader.read(third, '/api/node'), { ok: false, message: /agent-3 is not ready: CrashLoopBackOff/ });
});

test('a document that no agent sends is refused before it fills the memory of the reader', async (t) => {
  for (const status of [200, 500]) {
    const posing = createServer((_request, response) => response.writeHead(status).end('['.repeat(8 << 20)));
    await new Promise<void>((resolve) => posing.listen(0, '127.0.0.1', resolve));
    t.teardown(() => void posing.close());
    const server = await apiServer(t);
    server.reach = () => (posing.address() as AddressInfo).port;
    server.seed('pods', agentObject('agent-1', 'node1', { args: ['run'] }));
    const api = clientOf(t, server.url);
    const [agent] = [...(await agentPods(api, 'kube-system')).values()];
    const answer = await new AgentReader({ api, clock: new ManualClock() }).read(agent!, '/api/node');
    t.match(answer, status === 200 ? { ok: false, message: /more than 4194304 bytes/ } : { ok: false });
  }
});

test('a user without the rights is told which one is missing', async (t) => {
  const server = await apiServer(t, { authorize: (_, { subresource }) => subresource !== 'token' });
  server.seed('pods', agentObject('agent-1', 'node1'));
  const api = clientOf(t, server.url);
  const [agent] = [...(await agentPods(api, 'kube-system')).values()];
  const reader = new AgentReader({ api, clock: new ManualClock() });
  t.match(await reader.read(agent!, '/api/node'), {
    ok: false,
    by: 'API server',
    code: 'forbidden',
    message: /no token of the service account kube-system\/gpu-manager-reader: .*cannot create/,
  });
});
