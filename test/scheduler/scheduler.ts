import type { Test } from 'tap';
import { Extender, type ExtenderOptions } from '../../src/scheduler/extender.js';
import type { NodeObject } from './objects.js';
import type { PodObject } from './objects.js';
import type { FilterResult, HostPriority, BindingResult } from '../../src/scheduler/results.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { FakeApi } from './fake-api.js';

export interface Rig {
  readonly api: FakeApi;
  readonly url: string;
  readonly extender: Extender;
  readonly scheduler: Scheduler;
}

/** An extender on a free port of loopback, with an API server in memory. It stops with the test. */
export async function start(
  t: Test,
  nodes: readonly NodeObject[],
  options: Partial<ExtenderOptions> = {},
  api = new FakeApi(),
): Promise<Rig> {
  nodes.forEach((node) => api.setNode(node));
  const extender = new Extender(
    {
      address: '127.0.0.1',
      port: 0,
      tls: null,
      policy: 'fragmentation',
      version: '1.2.3',
      reservationTtlMs: 30_000,
      settleTimeoutMs: 500,
      startDelayMs: 0,
      offer: 'all',
      // A busy machine may stop a call for longer than it may compute.
      callLimits: { cpuMs: 60_000, ms: 60_000 },
      ...options,
    },
    { source: api, limits: api, writer: api, clock: systemClock, log: silentLog(), election: null },
  );
  await extender.start();
  t.teardown(() => extender.stop());
  const url = `http://127.0.0.1:${extender.port}`;
  return { api, url, extender, scheduler: new Scheduler(url, api) };
}

export async function post<T>(url: string, body: unknown): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
  if (!response.ok) throw new Error(`${response.status}: ${(await response.text()).trim()}`);
  return (await response.json()) as T;
}

export type Outcome =
  | { readonly node: string; readonly bound: Promise<BindingResult> }
  | { readonly error: string; readonly failed: Record<string, string> };

/**
 * What kube-scheduler does with one pod, as far as an extender sees it: filter, prioritize, take the highest score (of
 * equal nodes the first name), bind without waiting for the result.
 */
export class Scheduler {
  readonly #url: string;
  readonly #api: FakeApi;

  constructor(url: string, api: FakeApi) {
    this.#url = url;
    this.#api = api;
  }

  async schedule(pod: PodObject, binds: 'extender' | 'scheduler' = 'extender'): Promise<Outcome> {
    const filtered = await this.filter(pod, [...this.#api.nodes.keys()]);
    const names = filtered.NodeNames ?? [];
    if (filtered.Error !== '' || names.length === 0)
      return { error: filtered.Error, failed: { ...filtered.FailedNodes } };
    const scores = await post<HostPriority[]>(`${this.#url}/scheduler/prioritize`, {
      Pod: pod,
      Nodes: null,
      NodeNames: names,
    });
    const best = Math.max(...scores.map(({ Score }) => Score));
    const node = scores
      .filter(({ Score }) => Score === best)
      .map(({ Host }) => Host)
      .sort()[0] as string;
    return { node, bound: binds === 'extender' ? this.bind(pod, node) : this.#bindItself(pod, node) };
  }

  filter(pod: PodObject, names: readonly string[]): Promise<FilterResult> {
    return post<FilterResult>(`${this.#url}/scheduler/predicates`, { Pod: pod, Nodes: null, NodeNames: names });
  }

  bind(pod: PodObject, node: string): Promise<BindingResult> {
    return post<BindingResult>(`${this.#url}/scheduler/bind`, {
      PodName: pod.metadata?.name,
      PodNamespace: 'default',
      PodUID: pod.metadata?.uid,
      Node: node,
    });
  }

  async #bindItself(pod: PodObject, node: string): Promise<BindingResult> {
    const { name = '', uid = '' } = pod.metadata ?? {};
    const result = await this.#api.bind({ namespace: 'default', name, uid }, node, {});
    return { Error: result.ok ? '' : result.message };
  }
}

/**
 * Creates the pod, schedules it and waits for its binding: `node: index,index | index` for its containers with GPUs, or
 * `none`.
 */
export async function settle(rig: Rig, pod: PodObject, binds: 'extender' | 'scheduler' = 'extender'): Promise<string> {
  rig.api.setPod(pod);
  const outcome = await rig.scheduler.schedule(pod, binds);
  if (!('node' in outcome)) return 'none';
  const { Error: error } = await outcome.bound;
  if (error !== '') return `error: ${error}`;
  await new Promise((resolve) => setTimeout(resolve, rig.api.watchLagMs + rig.api.writeLagMs));
  return `${outcome.node}: ${predicted(rig.api.pod(pod.metadata?.name ?? ''))}`;
}

export function predicted(pod: PodObject): string {
  return (pod.spec?.containers ?? [])
    .flatMap((_, at) => pod.metadata?.annotations?.[`tencent.com/predicate-gpu-idx-${at}`] ?? [])
    .join(' | ');
}
