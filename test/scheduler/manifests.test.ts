import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { extenderCommand } from '../../src/cli/extender.js';
import { ANSWER_WITHIN_MS } from '../../src/scheduler/extender-service.js';
import { node, plainNode, pod } from './objects.js';
import { post, start } from './scheduler.js';

const folder = fileURLToPath(new URL('../../../etc/extender', import.meta.url));

interface ExtenderEntry {
  readonly urlPrefix: string;
  readonly filterVerb: string;
  /** Absent where another entry has this verb. */
  readonly prioritizeVerb?: string;
  readonly bindVerb: string;
  readonly preemptVerb: string;
  /** A duration as Go prints it, or nanoseconds. */
  readonly httpTimeout: string | number;
  readonly managedResources: readonly { readonly name: string }[];
}

/** An entry that applies to every pod and only scores. */
interface ScoringEntry {
  readonly urlPrefix: string;
  readonly prioritizeVerb: string;
  readonly ignorable: boolean;
  readonly managedResources?: unknown;
}

/** The entry for GPU pods of each file, and its entry for every pod if there is one. */
function configurations(): [string, ExtenderEntry, ScoringEntry | undefined][] {
  return readdirSync(folder)
    .filter((file) => file.startsWith('scheduler-'))
    .map((file) => {
      const { extenders } = parse(readFileSync(join(folder, file), 'utf8')) as {
        extenders: [ExtenderEntry, ScoringEntry?];
      };
      return [file, extenders[0], extenders[1]];
    });
}

function entries(): [string, ExtenderEntry][] {
  return configurations().map(([file, entry]) => [file, entry]);
}

test('every scheduler configuration names verbs that the extender answers', async (t) => {
  const { url } = await start(t, [node('n', [16])]);
  t.equal(configurations().length, 4);
  for (const [file, entry, scoring] of configurations()) {
    const at = (verb: string) => `${url}${new URL(entry.urlPrefix).pathname}/${verb}`;
    const wanted = pod(`p-${file}`, [[10, 1]]);
    t.match(await post(at(entry.filterVerb), { Pod: wanted, NodeNames: ['n'] }), { NodeNames: ['n'] }, file);
    const prioritize = at((scoring ?? entry).prioritizeVerb ?? 'none');
    t.match(await post(prioritize, { Pod: wanted, NodeNames: ['n'] }), [{ Host: 'n', Score: 10 }]);
    t.equal(entry.prioritizeVerb === undefined, scoring !== undefined, `${file}: one entry scores a pod`);
    t.match(await post(at(entry.bindVerb), { PodName: 'p', PodNamespace: 'default', PodUID: 'u', Node: 'n' }), {
      Error: /not known/,
    });
    t.match(await post(at(entry.preemptVerb), { Pod: wanted, NodeNameToMetaVictims: {} }), {
      NodeNameToMetaVictims: {},
    });
    t.same(
      entry.managedResources.map(({ name }) => name),
      ['tencent.com/vcuda-core', 'tencent.com/vcuda-memory'],
    );
  }
});

test('where the extender scores every pod, pods without GPUs go to the nodes where they waste no GPU capacity', async (t) => {
  const cpuOnly = { ...plainNode('cpu', 0, 0) };
  const { url } = await start(t, [node('idle', [16]), cpuOnly]);
  const scoring = configurations().flatMap(([, , entry]) => entry ?? []);
  t.equal(scoring.length, 1);
  for (const { urlPrefix, prioritizeVerb, ignorable, managedResources } of scoring) {
    t.equal(ignorable, true, 'pods without GPUs are placed while the extender is down');
    t.equal(managedResources, undefined);
    const path = `${url}${new URL(urlPrefix).pathname}/${prioritizeVerb}`;
    const web = pod('web', [null]);
    const heavy = { ...web, spec: { containers: [{ name: 'c0', resources: { requests: { cpu: '90' } } }] } };
    const scores = await post<{ Host: string; Score: number }[]>(path, { Pod: heavy, NodeNames: ['idle', 'cpu'] });
    t.equal(scores.find(({ Host }) => Host === 'cpu')?.Score, 10);
  }
});

test("the timeout of every scheduler configuration is longer than the extender's longest answer", (t) => {
  const { settleTimeout } = extenderCommand().opts<{ settleTimeout: number }>();
  for (const [file, { httpTimeout }] of entries()) {
    const waitsMs = typeof httpTimeout === 'number' ? httpTimeout / 1e6 : Number(httpTimeout.replace(/s$/u, '')) * 1000;
    t.ok(waitsMs > ANSWER_WITHIN_MS + settleTimeout, `${file}: ${waitsMs} ms`);
  }
  t.end();
});

test('the Deployment starts the extender at the address that the scheduler uses, with existing flags', (t) => {
  const documents = parseAllDocuments(readFileSync(join(folder, 'deployment.yaml'), 'utf8')).map(
    (document) =>
      document.toJS() as { kind: string; spec?: { template: { spec: { containers: [{ args: string[] }] } } } },
  );
  t.same(
    documents.map(({ kind }) => kind),
    ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding', 'Deployment'],
  );
  const [command, ...flags] = documents[5]?.spec?.template.spec.containers[0].args ?? [];
  t.equal(command, 'extender');
  const parsed = extenderCommand()
    .action(() => undefined)
    .exitOverride()
    .parse(flags, { from: 'user' });
  const { host, port } = parsed.opts<{ address: { host: string; port: number } }>().address;
  for (const [file, entry] of entries()) t.equal(new URL(entry.urlPrefix).host, `${host}:${port}`, file);
  t.end();
});
