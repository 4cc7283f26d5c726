import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Demo } from '../simulation/demo.js';
import { keptAlive } from '../host/keep-alive.js';
import { createLog, silentLog } from '../host/log.js';
import { stopSignal } from './stop-signal.js';

interface DemoOptions {
  readonly once?: boolean;
  readonly verbose?: boolean;
  readonly queryPort: string;
}

/** `gpu-manager demo`: the agent on simulated GPUs and an emulated kubelet, taken through its main job. */
export function demoCommand(): Command {
  return new Command('demo')
    .description('run the agent on simulated GPUs and an emulated kubelet; needs no GPU, no cluster and no root')
    .option('--once', 'run the scenario and exit; exit code 0 only if every step passed')
    .option('--verbose', "print the agent's log as well")
    .option('--query-port <port>', 'HTTP port of the page', '5678')
    .action(async (options: DemoOptions) => {
      const directory = await mkdtemp(join(tmpdir(), 'gpu-demo-'));
      const once = options.once === true;
      const demo = new Demo(
        directory,
        options.verbose === true ? createLog('info') : silentLog(),
        once ? 0 : Number(options.queryPort),
      );
      try {
        await demo.start();
        const failed = await demo.runScenario(({ title, ok, outcome }) =>
          console.log(`${ok ? 'ok    ' : 'FAILED'} ${title}: ${outcome}`),
        );
        if (failed > 0) process.exitCode = 1;
        if (!once) {
          await demo.liveOn();
          console.log(`look at http://localhost:${demo.node.agent.httpPort()}; Ctrl-C ends`);
          await keptAlive(stopSignal);
        }
      } finally {
        await demo.stop();
        await rm(directory, { recursive: true, force: true });
      }
    });
}
