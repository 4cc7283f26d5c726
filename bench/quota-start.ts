import { execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cpuSeconds, residentMib } from './agent/process-cost.js';
import type { BareList } from './quota-start/bare-list.js';
import { measured, type Bench } from './report.js';
import { whenReady } from './webhook/ready.js';

const SERVICE = fileURLToPath(new URL('quota-start/service.js', import.meta.url));
const API_SERVER = fileURLToPath(new URL('quota-start/api-server.js', import.meta.url));
const BARE_LIST = fileURLToPath(new URL('quota-start/bare-list.js', import.meta.url));
/** The options of Node.js that the manifests set. */
const MANIFEST = fileURLToPath(new URL('../../etc/quota/deployment.yaml', import.meta.url));
const PORT = 18_544;
const WORKLOADS = 100_000;
const GROUPS = 20;
/** After this time in service the resident memory is read a second time. */
const SETTLED_MS = 15_000;

/** A start of the service. */
interface Start {
  readonly ms: number;
  readonly cpuMs: number;
  readonly mostMib: number;
  readonly settledMib: number;
}

/**
 * How long `quota serve` takes until it is ready, and its memory, with 100,000 Deployments in 20 groups, and with pods
 * of theirs if their number is given: once with empty ledgers, as at the installation, and once as a restart. Baseline:
 * a process that lists the Deployments in pages and keeps nothing. Node.js runs with the options of the manifests
 * unless others are given.
 *
 *     npm run bench -- quota-start [WORKLOADS [PODS]] [NODE OPTION...]
 */
export const run: Bench = async ({ args, report, note }) => {
  const [workloads = WORKLOADS, pods = 0] = args.filter((arg) => /^\d+$/.test(arg)).map(Number);
  const given = args.filter((arg) => arg.startsWith('-'));
  const nodeOptions = given.length > 0 ? given : manifestOptions();
  const server = fork(API_SERVER, [`${workloads}`, `${GROUPS}`, `${pods}`], {
    execArgv: ['--max-old-space-size=8192'],
  });
  const agent = new Agent({ keepAlive: false, rejectUnauthorized: false });
  try {
    const [url] = (await once(server, 'message')) as [string];
    const { stdout } = await promisify(execFile)(process.execPath, [BARE_LIST, url]);
    const bare = JSON.parse(stdout) as BareList;
    if (bare.objects !== workloads) throw new Error(`the bare list has ${bare.objects} objects`);
    report(measured('bare list', bare.ms, 'ms'));
    report(measured('most resident memory of the bare list', bare.mostMib, 'MiB'));
    for (const variant of ['first start', 'restart']) {
      const start = await startService(url, agent, nodeOptions);
      report(measured('ready', start.ms, 'ms', bare.ms, variant));
      report(measured('CPU until ready', start.cpuMs, 'ms', null, variant));
      report(measured('most resident memory until ready', start.mostMib, 'MiB', bare.mostMib, variant));
      report(measured(`resident memory ${SETTLED_MS / 1000} s later`, start.settledMib, 'MiB', bare.mostMib, variant));
    }
    note(
      `${workloads} Deployments of 4 KB in ${GROUPS} groups, ${pods} pods, ${nodeOptions.join(' ')}; ratios are to the bare list`,
    );
  } finally {
    agent.destroy();
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  }
};

function manifestOptions(): readonly string[] {
  const [, options] = /name: NODE_OPTIONS, value: "?([^"}]+?)"? }/.exec(readFileSync(MANIFEST, 'utf8')) ?? [];
  if (options === undefined) throw new Error(`${MANIFEST} sets no NODE_OPTIONS`);
  return options.split(' ');
}

async function startService(url: string, agent: Agent, nodeOptions: readonly string[]): Promise<Start> {
  const startedAt = performance.now();
  const service = spawn(process.execPath, [...nodeOptions, SERVICE, url, `${PORT}`], { stdio: 'inherit' });
  const { pid } = service;
  if (pid === undefined) throw new Error('the quota service did not start');
  const ended = once(service, 'exit');
  try {
    await Promise.race([whenReady(PORT, agent), ended.then(() => Promise.reject(new Error('the service ended')))]);
    const [ms, cpuMs, mostMib] = [performance.now() - startedAt, cpuSeconds(pid) * 1000, mostResidentMib(pid)];
    await delay(SETTLED_MS);
    return { ms, cpuMs, mostMib, settledMib: residentMib(pid) };
  } finally {
    service.kill('SIGTERM');
    await ended;
  }
}

/** Most resident memory of a process until now, in MiB. */
function mostResidentMib(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;
}
