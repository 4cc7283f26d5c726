import { test } from 'tap';
import { createLog } from '../../src/host/log.js';
import { runPod, startedNode } from './node.js';
import { simplePod } from './pods.js';

/** A log, and the records that were written to it. */
function recorded(level: 'info' | 'debug' = 'info') {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(level, {
    write: (text: string) => void lines.push(JSON.parse(text) as Record<string, unknown>),
  });
  return { log, lines, take: () => lines.splice(0) };
}

test('each decision is one line that names pod and allocation in separate fields', async (t) => {
  const { log, take } = recorded();
  const node = await startedNode(t, { log, knowsPods: true, seams: { graceMs: 0 } });
  take();
  const wanted = simplePod(30, 8);
  await runPod(node, wanted);
  const started = take();
  t.match(
    started.map(({ msg }) => msg),
    ['allocated', 'container starts'],
  );
  const allocation = [...node.agent.allocator.state.allocations.keys()][0];
  t.match(started[1], {
    level: 'info',
    allocation,
    namespace: 'default',
    pod: wanted.name,
    container: 'main',
    podUid: wanted.uid,
    gpus: [0],
    time: /^\d{4}-\d\d-\d\dT/,
  });

  await node.kubelet.admit(simplePod(150, 8));
  t.match(take(), [
    { level: 'warn', msg: 'refused', resource: 'core', size: 150, code: 'bad-core-count', reason: /multiple of 100/ },
  ]);

  node.kubelet.remove(wanted.uid);
  await node.kubelet.admit(simplePod(10, 4));
  t.match(
    take().find(({ msg }) => msg === 'freed'),
    { allocation, namespace: 'default', pod: wanted.name, container: 'main' },
  );
});

test('an idle agent logs nothing, in spite of its periodic work', async (t) => {
  const { log, take } = recorded('debug');
  const node = await startedNode(t, {
    log,
    knowsPods: true,
    config: { allocationCheckPeriodMs: 200, samplePeriodMs: 100 },
  });
  await runPod(node, simplePod(30, 8));
  await fetch(`http://127.0.0.1:${node.agent.httpPort()}/metrics`).then((answer) => answer.text());
  take();
  // Many periods of every periodic task.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  t.same(take(), []);
});
