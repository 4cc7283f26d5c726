import { parseArgs } from 'node:util';
import { whyNoCluster } from '../test/e2e/cluster.js';
import { chosenVersion, KubernetesVersion } from '../test/e2e/kubernetes-version.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { measured, type Bench, type BenchOptions } from './report.js';
import { PARTS } from './scheduler/cpu-split.js';
import { GPUS, SHARE } from './scheduler/simulated-objects.js';
import { WaitingPods, type Binding, type Program } from './scheduler/waiting-pods.js';

/**
 * A real kube-scheduler binds waiting pods to simulated nodes: without the extender, which counts GPUs in sum only (the
 * baseline), with it, and with resource claims. The extender runs as the shipped Deployment starts it (`--offer=best`),
 * and once with its default (`--offer=all`). Etcd, API server, scheduler and extender share this machine. The parts of
 * the extender's CPU time are from a further run with Node's profiler.
 *
 *     npm run bench -- scheduler [--kubernetes VERSION] [--nodes 500] [--pods 1000] [--own-core]
 *                                [--short [--samples 1] | --warm [--rounds 5] | --claims [--profile FILE]]
 *
 * With `--own-core` the extender has a processor for itself, and all other programs share the others in every run.
 * `--short` only compares the extender with none, so many times as `--samples` says. `--warm` does so with an extender
 * that keeps running: the pods are bound `--rounds` times, the first time by a program that has just started, and what
 * the API server answers and sends for it is counted. `--claims` only claims with none
 * of both; `--profile` writes the scheduler's CPU profile of 60 seconds with claims, for `go tool pprof`. It needs root
 * and a built Kubernetes (`npm run kubernetes -- build VERSION`), by default the newest one.
 */
export const run: Bench = async ({ args, report, note }) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kubernetes: { type: 'string' },
      nodes: { type: 'string', default: '500' },
      pods: { type: 'string', default: '1000' },
      'own-core': { type: 'boolean', default: false },
      short: { type: 'boolean', default: false },
      samples: { type: 'string', default: '1' },
      warm: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '5' },
      claims: { type: 'boolean', default: false },
      profile: { type: 'string' },
    },
  });
  const [nodes, pods, hasOwnCore] = [Number(values.nodes), Number(values.pods), values['own-core']];
  const find = (): KubernetesVersion =>
    values.kubernetes === undefined ? chosenVersion() : new KubernetesVersion(values.kubernetes);
  const reason = whyNoCluster(find);
  if (reason !== null) {
    note(`skipped: ${reason}.`);
    return;
  }
  const version = find();
  const waiting = new WaitingPods(version, { nodes, pods, hasOwnCore });
  try {
    await waiting.start();
    const setting = `Kubernetes ${version.name}: ${pods} waiting pods of ${SHARE.cores} cores on ${nodes} simulated nodes of ${GPUS} GPUs${hasOwnCore ? ', the extender on a processor of its own' : ''}; all pods wait when the scheduler starts, and it may make 2,000 requests a second.`;
    if (values.claims) {
      const without = await waiting.bindAll('resources', null);
      reportBinding('without the extender', without, null, report);
      await reportClaims(version, waiting, without, values.profile ?? null, report, note);
      note(setting);
      return;
    }
    if (values.short) {
      for (let sample = 0; sample < Number(values.samples); sample += 1) {
        const { without, beside } = await bindBesideNone(waiting, report, note);
        reportExtender(without, beside, null, report);
      }
      note(setting);
      return;
    }
    if (values.warm) {
      await reportWarm(waiting, Number(values.rounds), report, note);
      note(setting);
      return;
    }
    const { without, beside } = await bindBesideNone(waiting, report, note);
    const profiled = await waiting.bindAll('resources', { offer: 'best', isProfiled: true });
    const all = await waiting.bindAll('resources', { offer: 'all', isProfiled: false });
    reportBinding('with the extender, --offer=all', all, without, report);
    report(measured("the extender's CPU time for a pod, --offer=all", cpuMsOf(all, 'extender'), 'ms'));
    reportExtender(without, beside, profiled, report);
    await reportClaims(version, waiting, without, values.profile ?? null, report, note);
    note(setting);
  } finally {
    await waiting.stop();
  }
};

/** All pods without the extender, and all with it. */
async function bindBesideNone(
  waiting: WaitingPods,
  report: BenchOptions['report'],
  note: BenchOptions['note'],
): Promise<{ readonly without: Binding; readonly beside: Binding }> {
  const without = await waiting.bindAll('resources', null);
  const beside = await waiting.bindAll('resources', { offer: 'best', isProfiled: false });
  reportBinding('without the extender', without, null, report);
  reportBinding('with the extender', beside, without, report);
  report(measured('the extender: from its start to ready', beside.readySeconds, 's'));
  report(measured("the extender's resident memory", beside.extenderMib, 'MiB'));
  note(`CPU time for a pod in ms, without the extender: ${inWords(without)}; with it: ${inWords(beside)}.`);
  return { without, beside };
}

/**
 * The same pods several times beside one extender. Each round has a scheduler of its own, as the baseline has, so that
 * only the extender is warm. An extender that answers at once shows what the protocol costs, and a scheduler without
 * one that is as slow as with it, what waiting costs etcd and the API server.
 */
async function reportWarm(
  waiting: WaitingPods,
  rounds: number,
  report: BenchOptions['report'],
  note: BenchOptions['note'],
): Promise<void> {
  const without = await waiting.bindAll('resources', null);
  const all: Binding[] = [];
  for (let round = 1; round <= rounds; round += 1)
    all.push(await waiting.bindAll('resources', { offer: 'best', isProfiled: false, stays: round < rounds }));
  const [cold, warm] = [all[0] as Binding, all.at(-1) as Binding];
  const floor = await waiting.bindAll('resources', { offer: 'best', isProfiled: false, isInstant: true });
  // Each binding is a request for the pod and one for its event.
  const slow = { requestsPerSecond: 2 * Math.round(warm.podsPerSecond) };
  const slowly = await waiting.bindAll('resources', null, slow);
  for (const [how, binding] of [
    ['with the extender, cold', cold],
    ['with the extender, warm', warm],
    ['with an extender that answers at once', floor],
    ['without one, as slowly as with it', slowly],
  ] as const) {
    reportBinding(how, binding, without, report);
    report(measured(`time of a binding ${how}`, 1 / binding.podsPerSecond, 's', 1 / without.podsPerSecond));
    for (const name of ['apiserver', 'etcd', 'scheduler'] as const)
      report(measured(`${name}: CPU time for a pod ${how}`, cpuMsOf(binding, name), 'ms', cpuMsOf(without, name)));
    if (binding.cpuSeconds.has('extender'))
      report(measured(`extender: CPU time for a pod ${how}`, cpuMsOf(binding, 'extender'), 'ms', referenceMs()));
  }
  note(
    `The extender's CPU time for a pod in ms, in rounds of ${warm.pods} pods: ${all.map((one) => cpuMsOf(one, 'extender').toFixed(2)).join(', ')}.`,
  );
  for (const [how, binding] of [
    ['without the extender', without],
    ['with it, warm', warm],
  ] as const)
    note(`The API server for a pod, ${how}: ${countsInWords(binding)}.`);
}

/** Requests, events of watches and their bytes for each pod; what is rarer than one for a hundred pods is left out. */
function countsInWords({ counts, pods }: Binding): string {
  const list = (of: ReadonlyMap<string, number>, digits: number): string =>
    [...of]
      .filter(([, count]) => count / pods >= 0.01)
      .sort(([, one], [, other]) => other - one)
      .map(([name, count]) => `${name} ${(count / pods).toFixed(digits)}`)
      .join(', ');
  return `requests ${list(counts.requests, 2)}; watch events ${list(counts.events, 2)}; their bytes ${list(counts.eventBytes, 0)}`;
}

/** `profile`: the file of the scheduler's CPU profile meanwhile; null: none is made. */
async function reportClaims(
  version: KubernetesVersion,
  waiting: WaitingPods,
  without: Binding,
  profile: string | null,
  report: BenchOptions['report'],
  note: BenchOptions['note'],
): Promise<void> {
  if (!version.atLeast(36)) {
    note('claims are left out: shares of GPUs need Kubernetes 1.36.');
    return;
  }
  await waiting.publishGpus();
  await waiting.renewClaims();
  const all = await waiting.bindAll('claims', null, { profile });
  await waiting.renewClaims();
  const some = await waiting.bindAll('claims', null, { looksAt: 'some nodes' });
  const schedulerMs = cpuMsOf(without, 'scheduler');
  for (const [how, binding] of [
    ['with claims', all],
    ["with claims, kube-scheduler's own number of nodes", some],
  ] as const) {
    reportBinding(how, binding, without, report);
    report(measured(`the scheduler's CPU time for a pod ${how}`, cpuMsOf(binding, 'scheduler'), 'ms', schedulerMs));
  }
  note(
    `With claims only the scheduler decides, and no program of ours runs. CPU time for a pod in ms: ${inWords(all)}; without claims: ${inWords(without)}.`,
  );
}

function reportBinding(how: string, binding: Binding, baseline: Binding | null, report: BenchOptions['report']): void {
  report(measured(`all pods bound ${how}`, binding.seconds, 's', baseline?.seconds));
  report(measured(`pods bound ${how}`, binding.podsPerSecond, 'pods/s', baseline?.podsPerSecond));
}

/** CPU time of a program for each pod. */
function cpuMsOf({ cpuSeconds, pods }: Binding, program: Program): number {
  return (1_000 * (cpuSeconds.get(program) ?? NaN)) / pods;
}

function inWords(binding: Binding): string {
  return [...binding.cpuSeconds.keys()].map((name) => `${name} ${cpuMsOf(binding, name).toFixed(1)}`).join(', ');
}

/** `profiled`: null leaves out the parts of its CPU time. */
function reportExtender(
  without: Binding,
  beside: Binding,
  profiled: Binding | null,
  report: BenchOptions['report'],
): void {
  const cpuMs = cpuMsOf(beside, 'extender');
  const secondsFor = ({ podsPerSecond }: Binding): number => beside.pods / podsPerSecond;
  report(measured('time of all bindings', secondsFor(beside), 's', secondsFor(without)));
  report(measured("the extender's CPU time for a pod", cpuMs, 'ms', referenceMs()));
  if (profiled === null) return;
  const parts = PARTS.map((part) => [part, (1_000 * (profiled.split?.[part] ?? NaN)) / profiled.pods] as const);
  for (const [part, ms] of parts) report(measured(`of it ${part}`, ms, 'ms'));
  const helperMs = (1_000 * beside.helperSeconds) / beside.pods;
  report(measured("of it compiling and garbage collection in V8's helper threads", helperMs, 'ms'));
  const rest = parts.reduce((left, [, ms]) => left - ms, cpuMs - helperMs);
  report(measured('of it HTTP, system calls and garbage collection in the main thread', rest, 'ms'));
}
