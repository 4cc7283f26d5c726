import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { Demo } from '../simulation/demo.js';
import { runScenario, STEP_COUNTS } from '../simulation/demo-scenario.js';
import { keptAlive } from '../host/keep-alive.js';
import { StartupError } from '../host/startup-error.js';
import { listen } from '../http/listen.js';
import { createLog, silentLog } from '../host/log.js';
import { portOption } from './flag-values.js';
import { stopSignal } from './stop-signal.js';

/** The image sets it, so that a published port reaches the page. */
const IMAGE_ADDRESS_VARIABLE = 'GPU_MANAGER_DEMO_ADDR';

interface DemoOptions {
  readonly once?: boolean;
  readonly verbose?: boolean;
  readonly queryPort: number;
  readonly queryAddr: string;
  readonly consolePort: number;
}

/** `gpu-manager demo`: runs the agent on simulated GPUs and an emulated kubelet, and shows its main functions. */
export function demoCommand(): Command {
  return new Command('demo')
    .description(
      'run the agent on simulated GPUs and an emulated kubelet, then a simulated cluster with the console; needs no GPU, no cluster and no root',
    )
    .option('--once', 'run the scenario and exit; exit code 0 only if every step passed')
    .option('--verbose', "print the agent's log as well")
    .addOption(portOption('--query-port <port>', 'HTTP port of the page of the node', 5_678))
    .addOption(portOption('--console-port <port>', 'HTTP port of the console', 5_680))
    .addOption(
      new Option('--query-addr <address>', 'HTTP address of both').env(IMAGE_ADDRESS_VARIABLE).default('localhost'),
    )
    .action(async (options: DemoOptions) => {
      const once = options.once === true;
      const log = options.verbose === true ? createLog('info') : silentLog();
      const { queryPort, consolePort, queryAddr: address } = options;
      if (!once) {
        await checkPort(address, queryPort, '--query-port');
        await checkPort(address, consolePort, '--console-port');
      }
      const directory = await mkdtemp(join(tmpdir(), 'gpu-demo-'));
      const stopping = new AbortController();
      void stopSignal().then(() => stopping.abort());
      const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()));
      const demo = new Demo(
        directory,
        log,
        { port: once ? 0 : queryPort, address },
        once ? null : { port: consolePort, address },
      );
      let isShown = false;
      const show = async (): Promise<void> => {
        await demo.start();
        console.log(whatComes(once));
        const failed = await runScenario(
          demo,
          ({ title, ok, outcome }) => console.log(`${ok ? 'ok    ' : 'FAILED'} ${title}: ${outcome}`),
          stopping.signal,
        );
        if (failed > 0) process.exitCode = 1;
        if (!once && !stopping.signal.aborted) {
          console.log('\nStarting the cluster: three more nodes with agents, pods, claims, quota, the console...');
          await demo.liveOn();
          console.log(whatToTry(demo, options.queryAddr));
          isShown = true;
          await keptAlive(() => stopped);
        }
      };
      const shown = show();
      try {
        await Promise.race([shown, stopped]);
      } finally {
        const isCut = stopping.signal.aborted && !isShown;
        if (isCut) {
          console.log('stopping...');
          // The step that runs fails without its programs; nodes that are starting start, and then stop.
          demo.programs.end();
          await Promise.race([Promise.allSettled([shown]), delay(STOP_MS)]);
        }
        await Promise.race([demo.stop(), ...(isCut ? [delay(STOP_MS)] : [])]);
        await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
        if (isCut) process.exit(INTERRUPTED);
      }
    });
}

/** How long each part of a demonstration that was stopped half-way may take to end. */
const STOP_MS = 15_000;
/** Exit code of a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/** Rejects with a `StartupError` that names the flag if nothing can listen there; the console would fail much later. */
async function checkPort(address: string, port: number, flag: string): Promise<void> {
  const server = createServer();
  try {
    await listen(server, port, address);
  } catch (error) {
    throw new StartupError(`${(error as Error).message} (${flag})`);
  }
  await new Promise((resolve) => server.close(resolve));
}

/** Commands in the container of the image, whose name is its host name; otherwise of the package. */
function commandPrefix(): string {
  return process.env[IMAGE_ADDRESS_VARIABLE] === undefined
    ? 'npx gpu-manager'
    : `docker exec -it ${hostname()} gpu-manager`;
}

/** What the demonstration will show, before it begins. */
function whatComes(once: boolean): string {
  const { plugin, claims } = STEP_COUNTS;
  return [
    'Everything runs in this process: simulated GPUs, an emulated kubelet, the real agent and control library.',
    `First ${plugin} steps with a node of four GPUs: shares, memory limits, refusals, restarts, priorities, MIG.`,
    `Then ${claims} steps with resource claims (DRA).`,
    ...(once ? [] : ['Last a cluster to look at: the page of a node and the console of four nodes, until Ctrl-C.']),
    'Each line below is a step and what came out.',
    '',
  ].join('\n');
}

function whatToTry(demo: Demo, address: string): string {
  const name = ['0.0.0.0', '::', ''].includes(address) ? 'localhost' : address;
  const host = name.includes(':') ? `[${name}]` : name;
  const socket = demo.node.config.displaySocket;
  const prefix = commandPrefix();
  return [
    '',
    `The page of the node: http://${host}:${demo.node.agent.httpPort()}`,
    `The console of the cluster: http://${host}:${demo.consolePort}`,
    '  Waiting says why pods wait; Claims, Quota and Fair shares have content.',
    'In another terminal, the node:',
    ...['top', 'usage', 'graph', 'limits', 'events --follow'].map(
      (command) => `  ${prefix} ${command} --display-socket ${socket}`,
    ),
    ...(process.env[IMAGE_ADDRESS_VARIABLE] === undefined ? ofCluster(demo) : []),
    'Ctrl-C ends the demonstration.',
  ].join('\n');
}

/** Commands of kubectl gpu, which the image does not have. */
function ofCluster({ kubeconfigPath }: Demo): readonly string[] {
  return [
    'and the cluster, without kubectl:',
    `  export KUBECONFIG=${kubeconfigPath}`,
    ...['nodes', 'pods -A', 'explain llm-pretrain-0-b7t5q -n research', 'claims -A', 'quota tree', 'top'].map(
      (command) => `  npx kubectl-gpu ${command}`,
    ),
  ];
}
