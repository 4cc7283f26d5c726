import { CHECK_CONTROLLER } from '../../../src/quota-controller/workloads/kueue-workload.js';
import { GROUP_LABEL } from '../../../src/quota/internal.js';
import type { KubeAnswer } from '../../../src/kube/client.js';
import type { KubeObject } from '../../harness/api-server/kube-object.js';
import { eventually } from '../../harness/eventually.js';
import type { QuotaCluster } from '../cluster.js';

const ROOT = '/apis/kueue.x-k8s.io/v1beta2';
const WORKLOADS = `${ROOT}/namespaces/default/workloads`;
const JOBS = '/apis/batch/v1/namespaces/default/jobs';
const PODS = '/api/v1/namespaces/default/pods';
const CHECK = 'gpu-quota';

type Status = Readonly<Record<string, unknown>>;
interface Condition {
  readonly type: string;
  readonly status: string;
}

/** What Kueue 0.19 does to Jobs and Workloads, step by step, in the order that was observed on a real one. */
export class SimulatedKueue {
  readonly #cluster: QuotaCluster;

  constructor(cluster: QuotaCluster) {
    this.#cluster = cluster;
    const custom = { group: 'kueue.x-k8s.io', version: 'v1beta2', custom: true, statusSubresource: true } as const;
    cluster.server.define(
      { ...custom, plural: 'workloads', kind: 'Workload', namespaced: true },
      { ...custom, plural: 'admissionchecks', kind: 'AdmissionCheck', namespaced: false },
    );
    cluster.server.seed('admissionchecks', {
      metadata: { name: CHECK },
      spec: { controllerName: CHECK_CONTROLLER },
    });
  }

  /** Resolves when the quota has activated its AdmissionCheck. */
  async whenActive(): Promise<void> {
    await eventually(() => {
      const { conditions } = (this.#cluster.server.read('admissionchecks', '', CHECK)?.status ?? {}) as {
        readonly conditions?: readonly Condition[];
      };
      return conditions?.some(({ type, status }) => type === 'Active' && status === 'True') === true;
    }, 'the AdmissionCheck to be active');
  }

  /** A Job that Kueue holds back, with its Workload; Kueue's quota is reserved at once. */
  async submit(name: string, group: string, pods: number, cpu: number, priority = 0): Promise<void> {
    const labels = { 'kueue.x-k8s.io/queue-name': 'queue', ...(group === '' ? {} : { [GROUP_LABEL]: group }) };
    const template = templateOf(name, cpu);
    const job = await this.#must({
      method: 'POST',
      path: JOBS,
      body: { metadata: { name, labels }, spec: { suspend: true, parallelism: pods, completions: pods, template } },
    });
    await this.resubmit(name, (job as KubeObject).metadata.uid ?? '', pods, template, priority);
  }

  /** The Workload of a Job. */
  async resubmit(name: string, jobUid: string, pods: number, template: object, priority = 0): Promise<void> {
    await this.#must({
      method: 'POST',
      path: WORKLOADS,
      body: {
        metadata: {
          name,
          labels: { 'kueue.x-k8s.io/job-uid': jobUid },
          ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid: jobUid, controller: true }],
        },
        spec: { active: true, priority, podSets: [{ name: 'main', count: pods, template }] },
      },
    });
    await this.reserve(name);
  }

  /** Kueue reserves its quota, and asks the AdmissionCheck. */
  async reserve(name: string): Promise<void> {
    await this.#write(name, (status) => ({
      ...status,
      conditions: conditions(status, { QuotaReserved: 'True', Evicted: 'False' }),
      admission: { clusterQueue: 'queue', podSetAssignments: [{ name: 'main' }] },
      admissionChecks: [{ name: CHECK, state: 'Pending', message: '', lastTransitionTime: timeText() }],
    }));
  }

  /** Kueue starts the Job of a Workload whose check is Ready. */
  async admit(name: string): Promise<KubeAnswer> {
    await this.#write(name, (status) => ({ ...status, conditions: conditions(status, { Admitted: 'True' }) }));
    return this.#suspend(name, false);
  }

  async finish(name: string): Promise<void> {
    await this.#must({
      method: 'PATCH',
      path: `${JOBS}/${name}/status`,
      contentType: 'application/merge-patch+json',
      body: { status: { conditions: [{ type: 'Complete', status: 'True' }] } },
    });
    await this.#write(name, (status) => ({ ...status, conditions: conditions(status, { Finished: 'True' }) }));
  }

  /** The first step of an eviction: Kueue clears the check while its quota is still reserved. */
  async beginEviction(name: string): Promise<void> {
    await this.#write(name, (status) => ({
      ...status,
      conditions: conditions(status, { Evicted: 'True' }),
      admissionChecks: [{ name: CHECK, state: 'Pending', message: 'evicted', lastTransitionTime: timeText() }],
    }));
  }

  /** The last steps: the Job is suspended, and the quota of Kueue is given back. */
  async endEviction(name: string): Promise<void> {
    await this.#suspend(name, true);
    await this.#write(name, ({ admission: _, ...status }) => ({
      ...status,
      conditions: conditions(status, { QuotaReserved: 'False', Admitted: 'False' }),
    }));
  }

  /** A wrong answer, which the quota never gives to a Workload that is being stopped. */
  async answerRetry(name: string): Promise<void> {
    await this.#write(name, (status) => ({
      ...status,
      conditions: conditions(status, { Evicted: 'True' }),
      admissionChecks: [{ name: CHECK, state: 'Retry', message: '', lastTransitionTime: timeText() }],
    }));
  }

  /** Deletes the Job and its Workload, as garbage collection does. */
  async remove(name: string): Promise<void> {
    await this.#cluster.client.request({ method: 'DELETE', path: `${JOBS}/${name}` });
    await this.#cluster.client.request({ method: 'DELETE', path: `${WORKLOADS}/${name}` });
  }

  /** A pod of a running Job. */
  pod(job: string, index: number, cpu: number, group: string): Promise<KubeAnswer> {
    const uid = this.#cluster.server.read('jobs', 'default', job)?.metadata.uid ?? '';
    const { metadata, spec } = templateOf(job, cpu);
    return this.#cluster.client.request({
      method: 'POST',
      path: PODS,
      body: {
        metadata: {
          name: `${job}-${index}`,
          labels: { ...metadata.labels, [GROUP_LABEL]: group },
          ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: job, uid, controller: true }],
        },
        spec,
      },
    });
  }

  /** Any other write of Kueue, which changes the version of a Workload. */
  async touch(name: string): Promise<void> {
    await this.#write(name, (status) => ({ ...status, touched: Number(status['touched'] ?? 0) + 1 }));
  }

  state(name: string): string {
    return this.#entry(name)?.state ?? '';
  }

  message(name: string): string {
    return this.#entry(name)?.message ?? '';
  }

  condition(name: string, type: string): boolean {
    const { conditions: all = [] } = (this.#cluster.server.read('workloads', 'default', name)?.status ?? {}) as {
      readonly conditions?: readonly Condition[];
    };
    return all.some((condition) => condition.type === type && condition.status === 'True');
  }

  whenState(name: string, state: string): Promise<unknown> {
    return eventually(() => this.state(name) === state, `the check of ${name} to be ${state}`);
  }

  #entry(name: string): { readonly state: string; readonly message: string } | undefined {
    const { admissionChecks } = (this.#cluster.server.read('workloads', 'default', name)?.status ?? {}) as {
      readonly admissionChecks?: readonly { readonly state: string; readonly message: string }[];
    };
    return admissionChecks?.[0];
  }

  #suspend(name: string, suspend: boolean): Promise<KubeAnswer> {
    return this.#cluster.client.request({
      method: 'PATCH',
      path: `${JOBS}/${name}`,
      contentType: 'application/merge-patch+json',
      body: { spec: { suspend } },
    });
  }

  /** Kueue writes its own fields, and tries again if another writer was faster. */
  async #write(name: string, change: (status: Status) => Status): Promise<void> {
    for (;;) {
      const object = this.#cluster.server.read('workloads', 'default', name);
      if (object === null) return;
      const answer = await this.#cluster.client.request({
        method: 'PUT',
        path: `${WORKLOADS}/${name}/status`,
        body: { ...object, status: change((object.status ?? {}) as Status) },
      });
      if (answer.ok || answer.code === 'not-found') return;
      if (answer.code !== 'conflict') throw new Error(answer.message);
    }
  }

  async #must(request: Parameters<QuotaCluster['client']['request']>[0]): Promise<unknown> {
    const answer = await this.#cluster.client.request(request);
    if (!answer.ok) throw new Error(`${request.method} ${request.path}: ${answer.message}`);
    return answer.body;
  }
}

function templateOf(
  name: string,
  cpu: number,
): { readonly metadata: { readonly labels: Readonly<Record<string, string>> }; readonly spec: object } {
  return {
    metadata: { labels: { 'job-name': name } },
    spec: { containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu }, requests: { cpu } } }] },
  };
}

function conditions(status: Status, changed: Readonly<Record<string, string>>): readonly object[] {
  const before = (status['conditions'] ?? []) as readonly Condition[];
  return [
    ...before.filter(({ type }) => !(type in changed)),
    ...Object.entries(changed).map(([type, value]) => ({ type, status: value, lastTransitionTime: timeText() })),
  ];
}

function timeText(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
