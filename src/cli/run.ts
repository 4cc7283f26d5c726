import { Command } from 'commander';
import { checkConfig } from '../agent/config.js';
import type { Agent } from '../agent/agent.js';
import { buildAgent } from '../agent/run.js';
import { lockNode } from '../agent/standby.js';
import { systemClock } from '../host/clock.js';
import { VERSION } from '../host/version.js';
import { keptAlive } from '../host/keep-alive.js';
import { optimizeSmallFunctionsOnly } from '../host/optimized-code.js';
import { within } from '../host/within.js';
import { createLog } from '../host/log.js';
import { endAnyway } from './end-anyway.js';
import { ownDoctor } from './own-doctor.js';
import { agentConfig } from './run-config.js';
import { flagValues } from './run-flags.js';
import { addRunFlags, givenRunFlags } from './run-options.js';
import { stopSignal } from './stop-signal.js';

/** `gpu-manager run`: the node agent. */
export function runCommand(): Command {
  const command = new Command('run')
    .description('run the node agent: device plugin, vGPU manager and display')
    .allowExcessArguments(false);
  addRunFlags(command);
  command.action((options: Record<string, string>) => runAgent(flagValues(givenRunFlags(options), process.env)));
  return command;
}

/** If the agent does not start in time, it exits with the reason, and the DaemonSet restarts it. */
async function startWithin(agent: Agent, timeoutMs: number): Promise<void> {
  const late = () => new Error(`the device plugins did not start within ${timeoutMs} ms (--wait-timeout)`);
  await keptAlive(async () => {
    try {
      await within(agent.start(), timeoutMs, systemClock, late);
    } catch (error) {
      await agent.stop();
      throw error;
    }
  });
}

async function runAgent(values: Readonly<Record<string, string>>): Promise<void> {
  const config = agentConfig(values, process.env);
  await checkConfig(config);
  const log = createLog(config.logLevel);
  if (config.malformedNodeLabels.length > 0)
    log.warn({ labels: config.malformedNodeLabels }, '--node-labels: expected key=value; these entries are ignored');
  const stopped = stopSignal();
  const lock = await lockNode(config, systemClock, log, stopped);
  if (lock === null) return;
  const agent = await buildAgent(config, log, { doctor: ownDoctor(values, systemClock) });
  await startWithin(agent, config.waitTimeoutMs);
  optimizeSmallFunctionsOnly();
  log.info({ version: VERSION, node: config.nodeName, driver: config.driver, config: values }, 'the agent started');
  await keptAlive(async () => {
    log.info({ signal: await stopped }, 'stopping');
    await agent.stop();
  });
  await lock.release();
  endAnyway();
}
