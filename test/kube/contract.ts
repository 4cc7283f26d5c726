import { randomBytes } from 'node:crypto';
import { test, type Test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { eventsPath, podPath } from '../../src/kube/api-path.js';
import {
  MERGE_PATCH,
  METADATA_LIST,
  METADATA_ONLY,
  type KubeAnswer,
  type KubeClient,
  type KubeRequest,
} from '../../src/kube/client.js';
import { Events, podSubject } from '../../src/kube/events.js';
import type { KubeFailureCode } from '../../src/kube/failure.js';
import { NodePods } from '../../src/agent/api-server/node-pods.js';
import { PodWriter } from '../../src/agent/api-server/pod-writer.js';
import { WorkQueue } from '../../src/kube/work-queue.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { hastyClock } from './hasty-clock.js';
import { podObject, QUICK, type PodSpec } from './setting.js';

export interface Server {
  readonly name: string;
  readonly real?: boolean;
  /** Minor version of a real server, where it matters; not every build states its version. */
  readonly minor?: number;
  /** Null if there is no such server; `why` is printed. */
  readonly connect: ((t: Test) => Promise<KubeClient>) | null;
  readonly why?: string;
}

interface WatchEvent {
  readonly type: string;
  readonly object: KubeObject & { readonly code?: number };
}

const PODS = '/api/v1/namespaces/default/pods';

/** Names of this run: a real server keeps the objects of earlier runs. */
const run = randomBytes(4).toString('hex');
let serial = 0;
const fresh = (what: string): string => `${what}-${run}-${(serial += 1)}`;

class Session {
  readonly client: KubeClient;
  readonly #t: Test;
  readonly node = fresh('node');

  constructor(t: Test, client: KubeClient) {
    this.#t = t;
    this.client = client;
  }

  async ok(request: KubeRequest): Promise<KubeObject & { readonly items?: readonly KubeObject[] }> {
    const answer = await this.client.request(request);
    if (!answer.ok) throw new Error(`${request.method} ${request.path}: ${answer.code}: ${answer.message}`);
    return answer.body as KubeObject;
  }

  async fails(request: KubeRequest, code: KubeFailureCode, message?: RegExp): Promise<void> {
    this.#t.match(
      await this.client.request(request),
      { ok: false, code, ...(message === undefined ? {} : { message }) },
      `${request.method} ${request.path} ${code}`,
    );
  }

  /** A pod on the session's own node, deleted when the test ends. */
  async pod(spec: Partial<PodSpec> = {}): Promise<KubeObject> {
    const { status: _status, ...body } = podObject({ name: fresh('pod'), node: this.node, ...spec });
    const created = await this.ok({ method: 'POST', path: PODS, body });
    this.#t.teardown(async () => {
      await this.client.request(remove(created, 0));
    });
    return created;
  }

  /** Every event of a watch until `enough`. */
  async watch(
    query: Readonly<Record<string, string>>,
    enough: (events: readonly WatchEvent[]) => boolean,
    accept = 'application/json',
  ): Promise<WatchEvent[]> {
    const events: WatchEvent[] = [];
    const watch = this.client.watch(
      { path: PODS, query: { watch: '1', ...query }, accept, idleMs: 20_000 },
      { opened: () => undefined, event: (event) => events.push(event as WatchEvent) },
    );
    let over = false;
    void watch.ended.then(() => (over = true));
    await eventually(() => over || enough(events), `the watch (${events.map((event) => event.type).join()})`);
    watch.close();
    await watch.ended;
    return events;
  }
}

const pathOf = (object: KubeObject): string => podPath(object.metadata.namespace ?? '', object.metadata.name ?? '');
const patch = (path: string, body: unknown, contentType = MERGE_PATCH): KubeRequest => ({
  method: 'PATCH',
  path,
  body,
  contentType,
});
const remove = (object: KubeObject, gracePeriodSeconds?: number, preconditions?: object): KubeRequest => ({
  method: 'DELETE',
  path: pathOf(object),
  body: {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(preconditions === undefined ? {} : { preconditions }),
  },
});
const get = (path: string, query?: Readonly<Record<string, string>>): KubeRequest => ({ method: 'GET', path, query });
const version = (object: KubeObject): string => object.metadata.resourceVersion ?? '';
const onNode = (session: Session): Record<string, string> => ({ fieldSelector: `spec.nodeName=${session.node}` });
const summary = (events: readonly WatchEvent[]): string => events.map((event) => event.type).join(' ');

const STATEMENTS: Readonly<Record<string, (t: Test, session: Session) => Promise<void>>> = {
  'with accept for metadata, answers, lists and watch events have metadata only': async (t, session) => {
    const pod = await session.pod();
    const partial = { kind: 'PartialObjectMetadata', metadata: { uid: pod.metadata.uid } };
    const one = await session.ok({ ...get(pathOf(pod)), accept: METADATA_ONLY });
    t.match(one, partial);
    t.equal('spec' in one, false);
    const listed = await session.ok({ ...get(PODS, onNode(session)), accept: METADATA_LIST });
    t.match(listed, { kind: 'PartialObjectMetadataList', items: [{ metadata: { uid: pod.metadata.uid } }] });
    t.equal('spec' in (listed.items?.[0] ?? {}), false);
    const [event] = await session.watch(onNode(session), (events) => events.length > 0, METADATA_ONLY);
    t.match(event, { type: 'ADDED', object: partial });
    t.equal('spec' in (event?.object ?? {}), false);
  },

  'a created object gets a uid, a resourceVersion and a time, and exists only once': async (t, session) => {
    const pod = await session.pod();
    t.match(pod, {
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { uid: /.{36}/, resourceVersion: /^\d+$/, creationTimestamp: /^\d{4}-.*Z$/ },
      status: { phase: 'Pending' },
    });
    await session.fails(
      { method: 'POST', path: PODS, body: podObject({ name: pod.metadata.name ?? '', node: session.node }) },
      'already-exists',
    );
    await session.fails({ method: 'POST', path: PODS, body: podObject({ name: 'Not A Name' }) }, 'invalid');
  },

  'every request for a missing object is answered with not found': async (_t, session) => {
    const path = podPath('default', fresh('none'));
    await session.fails(get(path), 'not-found');
    await session.fails(patch(path, { metadata: {} }), 'not-found');
    await session.fails({ method: 'DELETE', path }, 'not-found');
  },

  'a merge patch changes the named fields, removes null fields, and advances the resourceVersion': async (
    t,
    session,
  ) => {
    const pod = await session.pod({ annotations: { a: '1', b: '2' } });
    const patched = await session.ok(patch(pathOf(pod), { metadata: { annotations: { b: null, c: '3' } } }));
    t.same(patched.metadata.annotations, { a: '1', c: '3' });
    t.not(version(patched), version(pod));
  },

  'a patch that changes nothing keeps the resourceVersion': async (t, session) => {
    const pod = await session.pod({ annotations: { a: '1' } });
    t.equal(version(await session.ok(patch(pathOf(pod), { metadata: { annotations: { a: '1' } } }))), version(pod));
  },

  'a patch with another uid is refused, one with a stale resourceVersion conflicts': async (t, session) => {
    const pod = await session.pod();
    const answer: KubeAnswer = await session.client.request(
      patch(pathOf(pod), { metadata: { uid: 'another', annotations: { a: '1' } } }),
    );
    t.ok(!answer.ok && (answer.code === 'conflict' || answer.code === 'invalid'), answer.ok ? 'accepted' : answer.code);
    await session.ok(patch(pathOf(pod), { metadata: { annotations: { a: '1' } } }));
    await session.fails(
      patch(pathOf(pod), { metadata: { resourceVersion: version(pod), annotations: { a: '2' } } }),
      'conflict',
    );
  },

  'an update with a stale resourceVersion conflicts': async (_t, session) => {
    const pod = await session.pod();
    const current = await session.ok(patch(pathOf(pod), { metadata: { labels: { a: '1' } } }));
    await session.fails({ method: 'PUT', path: pathOf(pod), body: pod }, 'conflict');
    await session.ok({
      method: 'PUT',
      path: pathOf(pod),
      body: { ...current, metadata: { ...current.metadata, labels: { a: '2' } } },
    });
  },

  'the status changes only through its subresource, which changes no other field': async (t, session) => {
    const pod = await session.pod();
    const body = { metadata: { annotations: { through: 'object' } }, status: { phase: 'Running' } };
    t.match(await session.ok(patch(pathOf(pod), body)), {
      metadata: { annotations: { through: 'object' } },
      status: { phase: 'Pending' },
    });
    t.match(await session.ok(patch(`${pathOf(pod)}/status`, { status: { phase: 'Running' } })), {
      status: { phase: 'Running' },
    });
  },

  'strategic merge patches merge lists by key, and JSON patches test before they change': async (t, session) => {
    const pod = await session.pod();
    const conditions = (type: string) => ({ status: { conditions: [{ type, status: 'True' }] } });
    const strategic = 'application/strategic-merge-patch+json';
    await session.ok(patch(`${pathOf(pod)}/status`, conditions('One'), strategic));
    const both = await session.ok(patch(`${pathOf(pod)}/status`, conditions('Two'), strategic));
    t.same((both.status as { conditions: { type: string }[] }).conditions.map((entry) => entry.type).sort(), [
      'One',
      'Two',
    ]);
    const json = 'application/json-patch+json';
    t.match(await session.ok(patch(pathOf(pod), [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }], json)), {
      metadata: { labels: { a: 'b' } },
    });
    await session.fails(
      patch(
        pathOf(pod),
        [
          { op: 'test', path: '/metadata/labels/a', value: 'c' },
          { op: 'remove', path: '/metadata/labels/a' },
        ],
        json,
      ),
      'invalid',
    );
  },

  'a dry run answers like the real request and changes nothing': async (t, session) => {
    const pod = await session.pod();
    const query = { dryRun: 'All' };
    t.match(await session.ok({ ...patch(pathOf(pod), { metadata: { labels: { dry: 'run' } } }), query }), {
      metadata: { labels: { dry: 'run' } },
    });
    t.equal(version(await session.ok(get(pathOf(pod)))), version(pod));
  },

  'a pod on a node is marked for deletion and stays until its kubelet ends it': async (t, session) => {
    const pod = await session.pod();
    t.match(await session.ok(remove(pod, 30)), {
      metadata: { deletionTimestamp: /Z$/, deletionGracePeriodSeconds: 30 },
    });
    t.ok((await session.ok(get(pathOf(pod)))).metadata.deletionTimestamp);
    await session.ok(remove(pod, 0));
    await session.fails(get(pathOf(pod)), 'not-found');
  },

  'a failed pod is removed at once when it is deleted': async (_t, session) => {
    const pod = await session.pod();
    await session.ok(
      patch(`${pathOf(pod)}/status`, { status: { phase: 'Failed', reason: 'UnexpectedAdmissionError' } }),
    );
    await session.ok(remove(pod));
    await session.fails(get(pathOf(pod)), 'not-found');
  },

  'a deletion with the uid of another pod conflicts': async (_t, session) => {
    const pod = await session.pod();
    await session.fails(remove(pod, 0, { uid: 'another' }), 'conflict');
    await session.ok(remove(pod, 0, { uid: pod.metadata.uid }));
  },

  'a finalizer keeps a deleted object until the finalizer is removed': async (t, session) => {
    const pod = await session.pod();
    await session.ok(patch(pathOf(pod), { metadata: { finalizers: ['example.com/held'] } }));
    await session.ok(remove(pod, 0));
    t.ok((await session.ok(get(pathOf(pod)))).metadata.deletionTimestamp);
    await session.ok(patch(pathOf(pod), { metadata: { finalizers: null } }));
    await session.fails(get(pathOf(pod)), 'not-found');
  },

  'lists select by field and label, and refuse unknown fields': async (t, session) => {
    const [one, two] = [await session.pod(), await session.pod()];
    await session.ok(patch(pathOf(two), { metadata: { labels: { tier: 'back' } } }));
    const names = async (query: Record<string, string>): Promise<string[]> =>
      ((await session.ok(get(PODS, { ...onNode(session), ...query }))).items ?? []).map(
        (item) => item.metadata.name ?? '',
      );
    t.same((await names({})).sort(), [one.metadata.name, two.metadata.name].sort());
    t.same(await names({ labelSelector: 'tier=back' }), [two.metadata.name]);
    t.same(await names({ labelSelector: 'tier notin (back)' }), [one.metadata.name]);
    t.same(await names({ labelSelector: '!tier' }), [one.metadata.name]);
    t.same(await names({ fieldSelector: `spec.nodeName=${session.node},metadata.name!=${one.metadata.name ?? ''}` }), [
      two.metadata.name,
    ]);
    await session.fails(get(PODS, { fieldSelector: 'spec.priority=1' }), 'invalid', /field label not supported/);
  },

  'a list has a kind, and its items have none': async (t, session) => {
    await session.pod();
    const list = await session.ok(get(PODS, onNode(session)));
    t.equal(list.kind, 'PodList');
    t.equal(list.items?.[0]?.kind, undefined);
  },

  'the pages of a list together show one moment': async (t, session) => {
    for (let i = 0; i < 5; i += 1) await session.pod();
    const first = await session.ok(get(PODS, { ...onNode(session), limit: '2' }));
    const token = String(first.metadata.continue);
    await session.pod();
    const second = await session.ok(get(PODS, { ...onNode(session), limit: '2', continue: token }));
    const third = await session.ok(
      get(PODS, { ...onNode(session), limit: '2', continue: String(second.metadata.continue) }),
    );
    t.same(
      [first, second, third].map((page) => page.items?.length),
      [2, 2, 1],
    );
    t.notOk(third.metadata.continue);
    t.equal(version(second), version(first));
  },

  'a list from the cache ignores the limit': async (t, session) => {
    for (let i = 0; i < 3; i += 1) await session.pod();
    await eventually(
      async () =>
        ((await session.ok(get(PODS, { ...onNode(session), limit: '1', resourceVersion: '0' }))).items ?? []).length ===
        3,
    );
    t.pass();
  },

  'a resourceVersion from the future is refused as too new': async (_t, session) => {
    const { metadata } = await session.ok(get(PODS, onNode(session)));
    const resourceVersion = String(Number(metadata.resourceVersion) + 1_000_000);
    await session.fails(get(PODS, { resourceVersion }), 'too-new', /Too large resource version/);
  },

  'a watch from a list reports every later event in order': async (t, session) => {
    const list = await session.ok(get(PODS, onNode(session)));
    const pod = await session.pod();
    await session.ok(patch(pathOf(pod), { metadata: { labels: { a: 'b' } } }));
    await session.ok(remove(pod, 0));
    const events = await session.watch({ ...onNode(session), resourceVersion: version(list) }, (seen) =>
      seen.some((event) => event.type === 'DELETED'),
    );
    // A pod on a node is marked first, even if it is deleted at once.
    t.equal(summary(events), 'ADDED MODIFIED MODIFIED DELETED');
    t.match(events[0]?.object, { kind: 'Pod', metadata: { name: pod.metadata.name } });
    const versions = events.map((event) => Number(version(event.object)));
    t.same(
      versions,
      [...versions].sort((a, b) => a - b),
    );
    t.equal(new Set(versions).size, 4, 'a deletion has a resourceVersion of its own');
  },

  'a watch without a resourceVersion starts with the existing objects': async (t, session) => {
    await session.pod();
    await session.pod();
    const events = await session.watch(onNode(session), (seen) => seen.length === 2);
    t.equal(summary(events), 'ADDED ADDED');
  },

  'a watch reports an object that enters or leaves its selection as added or deleted': async (t, session) => {
    const list = await session.ok(get(PODS, onNode(session)));
    const pod = await session.pod();
    await session.ok(patch(pathOf(pod), { metadata: { labels: { in: 'yes' } } }));
    await session.ok(patch(pathOf(pod), { metadata: { labels: { more: 'yes' } } }));
    await session.ok(patch(pathOf(pod), { metadata: { labels: { in: null } } }));
    const events = await session.watch(
      { labelSelector: 'in=yes', ...onNode(session), resourceVersion: version(list) },
      (seen) => seen.some((event) => event.type === 'DELETED'),
    );
    t.equal(summary(events), 'ADDED MODIFIED DELETED');
  },

  'a watch from long ago ends with 410 inside the stream': async (t, session) => {
    const events = await session.watch({ resourceVersion: '1' }, (seen) => seen.length > 0);
    t.match(events, [{ type: 'ERROR', object: { kind: 'Status', code: 410 } }]);
  },

  'a watch from the future reports no older event': async (t, session) => {
    const { metadata } = await session.ok(get(PODS, onNode(session)));
    const resourceVersion = String(Number(metadata.resourceVersion) + 1_000_000);
    const watching = session.watch({ ...onNode(session), resourceVersion, timeoutSeconds: '1' }, () => false);
    await session.pod();
    t.same(
      (await watching).filter((event) => event.type !== 'BOOKMARK'),
      [],
    );
  },

  'a watch ends after the requested time': async (t, session) => {
    const watch = session.client.watch(
      { path: PODS, query: { watch: '1', timeoutSeconds: '1', ...onNode(session) }, idleMs: 20_000 },
      { opened: () => undefined, event: () => undefined },
    );
    t.same(await watch.ended, { ok: true });
  },

  'an informer follows the pods of a node': async (t, session) => {
    const pods = new NodePods({
      client: session.client,
      nodeName: session.node,
      clock: systemClock,
      log: silentLog(),
      timing: QUICK,
    });
    t.teardown(() => pods.stop());
    const first = await session.pod({ containers: [{ name: 'main', cores: 30, memory: '16' }] });
    pods.start();
    await eventually(() => pods.pending()?.length === 1);
    t.match(pods.pending(), [{ podUid: first.metadata.uid, cores: 30, memoryBlocks: 16 }]);
    const second = await session.pod({ containers: [{ name: 'main', cores: 1000, memory: 2000 }] });
    await eventually(() => pods.pending()?.length === 2);
    t.equal(
      pods.pending()?.find((entry) => entry.podUid === second.metadata.uid)?.cores,
      1_000,
      'the server writes the value as 1k',
    );
    t.equal(pods.uidOf('default', second.metadata.name ?? ''), second.metadata.uid);
    await session.ok(remove(second, 0));
    await eventually(() => pods.ended().has(second.metadata.uid ?? ''));
    t.equal(pods.counts.failures.size, 0);
  },

  'annotations are written to the pod with the given uid, and to no other pod of its name': async (t, session) => {
    const queue = new WorkQueue({ clock: hastyClock, log: silentLog() });
    const writer = new PodWriter(session.client, queue);
    t.teardown(() => queue.stop());
    const pod = await session.pod({ annotations: { kept: 'yes' } });
    const ref = { namespace: 'default', name: pod.metadata.name ?? '', objectUid: pod.metadata.uid ?? '' };
    writer.annotate(ref, { 'tencent.com/gpu-assigned': 'true' });
    await eventually(() => queue.counts.done === 1);
    writer.annotate({ ...ref, objectUid: 'another' }, { 'tencent.com/gpu-assigned': 'false' });
    writer.delete({ ...ref, objectUid: 'another' });
    await eventually(() => queue.counts.dropped.get('gone') === 2);
    t.match((await session.ok(get(pathOf(pod)))).metadata, {
      annotations: { kept: 'yes', 'tencent.com/gpu-assigned': 'true' },
    });
    writer.delete(ref);
    await eventually(() => queue.counts.done === 2);
    t.ok((await session.ok(get(pathOf(pod)))).metadata.deletionTimestamp);
  },

  'events are accepted, and repeats raise their count': async (t, session) => {
    const queue = new WorkQueue({ clock: hastyClock, log: silentLog() });
    t.teardown(() => queue.stop());
    const events = new Events({
      api: session.client,
      queue,
      reporter: { component: 'gpu-manager', instance: session.node, host: session.node },
      clock: systemClock,
    });
    const pod = await session.pod();
    for (let i = 1; i <= 2; i += 1) {
      events.record(
        podSubject({ namespace: 'default', name: pod.metadata.name ?? '', uid: pod.metadata.uid ?? '' }, 'main'),
        { type: 'Warning', reason: 'GPURefused', message: 'no room' },
      );
      await eventually(() => queue.counts.done === i);
    }
    const fieldSelector = `involvedObject.uid=${pod.metadata.uid ?? ''},reason=GPURefused`;
    const list = await session.ok(get(eventsPath('default'), { fieldSelector }));
    t.match(list.items, [{ count: 2, type: 'Warning', message: 'no room', source: { component: 'gpu-manager' } }]);
  },
};

/** Not shown to hold on a real server, and why. */
const NOT_ON_REAL: Readonly<Record<string, string>> = {
  'a watch from long ago ends with 410 inside the stream':
    'only after the server was restarted: until then its cache knows everything since the beginning',
};

/** The minor version from which a real server meets a statement. */
const SINCE: Readonly<Record<string, { readonly minor: number; readonly before: string }>> = {
  'a patch that changes nothing keeps the resourceVersion': {
    minor: 21,
    before: 'Kubernetes before 1.21 writes the time of the patch into managedFields',
  },
};

function reasonToSkip(server: Server, statement: string): string | boolean {
  if (server.connect === null) return server.why ?? true;
  if (server.real !== true) return false;
  const since = SINCE[statement];
  return NOT_ON_REAL[statement] ?? (since !== undefined && (server.minor ?? 99) < since.minor ? since.before : false);
}

/** Runs every statement against a server. Differences between the programmable server and a real one show here. */
export function apiContract(server: Server): void {
  for (const [statement, prove] of Object.entries(STATEMENTS)) {
    const { connect } = server;
    test(`${server.name}: ${statement}`, { skip: reasonToSkip(server, statement) }, async (t) => {
      if (connect !== null) await prove(t, new Session(t, await connect(t)));
    });
  }
}
