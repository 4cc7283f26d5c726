import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { Demo } from '../simulation/demo.js';
import { keptAlive } from '../host/keep-alive.js';
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
}

/** `gpu-manager demo`: runs the agent on simulated GPUs and an emulated kubelet, and shows its main functions. */
export function demoCommand(): Command {
  return new Command('demo')
    .description('run the agent on simulated GPUs and an emulated kubelet; needs no GPU, no cluster and no root')
    .option('--once', 'run the scenario and exit; exit code 0 only if every step passed')
    .option('--verbose', "print the agent's log as well")
    .addOption(portOption('--query-port <port>', 'HTTP port of the page', 5_678))
    .addOption(
      new Option('--query-addr <address>', 'HTTP address of the page').env(IMAGE_ADDRESS_VARIABLE).default('localhost'),
    )
    .action(async (options: DemoOptions) => {
      const directory = await mkdtemp(join(tmpdir(), 'gpu-demo-'));
      const once = options.once === true;
      const demo = new Demo(directory, options.verbose === true ? createLog('info') : silentLog(), {
        port: once ? 0 : options.queryPort,
        address: options.queryAddr,
      });
      try {
        await demo.start();
        const failed = await demo.runScenario(({ title, ok, outcome }) =>
          console.log(`${ok ? 'ok    ' : 'FAILED'} ${title}: ${outcome}`),
        );
        if (failed > 0) process.exitCode = 1;
        if (!once) {
          await demo.liveOn();
          console.log(whatToTry(demo, options.queryAddr));
          await keptAlive(stopSignal);
        }
      } finally {
        await demo.stop();
        await rm(directory, { recursive: true, force: true });
      }
    });
}

/** Commands in the container of the image, whose name is its host name; otherwise of the package. */
function commandPrefix(): string {
  return process.env[IMAGE_ADDRESS_VARIABLE] === undefined
    ? 'npx gpu-manager'
    : `docker exec -it ${hostname()} gpu-manager`;
}

function whatToTry(demo: Demo, address: string): string {
  const name = ['0.0.0.0', '::', ''].includes(address) ? 'localhost' : address;
  const host = name.includes(':') ? `[${name}]` : name;
  const socket = demo.node.config.displaySocket;
  return [
    '',
    `The page of the node: http://${host}:${demo.node.agent.httpPort()}`,
    'In another terminal:',
    ...['top', 'usage', 'graph', 'limits', 'events --follow'].map(
      (command) => `  ${commandPrefix()} ${command} --display-socket ${socket}`,
    ),
    'Ctrl-C ends the demonstration.',
  ].join('\n');
}
