import type { Test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { fixedTls } from '../../src/http/tls.js';
import { watchableApi } from '../../src/kube/watchable-api.js';
import { GROUPS_PATH } from '../../src/kube/quota/names.js';
import { QuotaMetrics } from '../../src/quota-controller/quota-metrics.js';
import { QuotaService } from '../../src/quota-controller/service.js';
import { gpu, node as nodeSnapshot, served, viewOf } from '../agent/display/fixture.js';
import { certificateAuthority } from '../harness/certificate.js';
import { eventually } from '../harness/eventually.js';
import { clientTo, quotaServer } from '../quota-controller/setting.js';
import { FakeApi } from '../scheduler/fake-api.js';
import { node } from '../scheduler/objects.js';
import { start } from '../scheduler/scheduler.js';

/** A program that serves HTTPS, as the contract of all listeners tests it. */
export interface Served {
  readonly port: number;
  /** A path that accepts bodies by POST; null where there is none. */
  readonly takesBodies: string | null;
  /** The maximum size of a body in bytes. */
  readonly mostBodyBytes: number;
}

export interface Program {
  readonly name: string;
  /** Serves on a free port of loopback and stops with the test; the program becomes ready, or stays unready. */
  readonly serve: (t: Test, isReady: boolean) => Promise<Served>;
}

const ca = await certificateAuthority();
const identity = await ca.server(['localhost', '127.0.0.1']);

/** The authority of every program's certificate, PEM. */
export const AUTHORITY = ca.certificate;

/** Every program of this project that listens for HTTP. */
export const PROGRAMS: readonly Program[] = [
  {
    name: 'display',
    async serve(t, isReady) {
      const view = viewOf(() => nodeSnapshot({ gpus: [gpu(0)] }), {
        notReady: () => (isReady ? [] : ['not registered with the kubelet']),
      });
      const { server } = await served(t, view, { certificate: fixedTls(identity) });
      return { port: server.port, takesBodies: null, mostBodyBytes: 0 };
    },
  },
  {
    name: 'extender',
    async serve(t, isReady) {
      const api = Object.assign(new FakeApi(), { answersLists: isReady });
      const { extender } = await start(t, [node('n', [16])], { tls: fixedTls(identity) }, api);
      return { port: extender.port, takesBodies: '/scheduler/prioritize', mostBodyBytes: 128 << 20 };
    },
  },
  {
    name: 'webhook',
    async serve(t, isReady) {
      const server = await quotaServer();
      const client = clientTo(server.url);
      const api = watchableApi(client, systemClock, silentLog());
      const neverSynced = {
        start: () => undefined,
        stop: async () => undefined,
        silentMs: 0,
        synced: false,
        whenSynced: () => new Promise<void>(() => undefined),
        values: () => [],
        onChange: () => () => undefined,
      };
      const service = new QuotaService({
        // The policy and the nodes are cached at once; groups and workloads never are.
        api: isReady
          ? api
          : {
              ...api,
              informer: (options) => (options.path === GROUPS_PATH ? neverSynced : api.informer(options)),
            },
        log: silentLog(),
        metrics: new QuotaMetrics(),
        address: '127.0.0.1',
        port: 0,
        certificate: { ...identity, authority: AUTHORITY },
        target: null,
        webhookName: 'quota',
        unlabelled: 'Ignore',
        namespace: 'kube-system',
        identity: 'replica',
      });
      t.teardown(async () => {
        await service.stop();
        client.close();
        await server.stop();
      });
      await service.start();
      if (isReady) await eventually(() => service.notReady === null, 'the replica to be ready');
      return { port: service.port, takesBodies: '/workloads', mostBodyBytes: 8 << 20 };
    },
  },
];
