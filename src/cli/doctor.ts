import { Command } from 'commander';
import type { Diagnosis } from '../agent/diagnosis.js';
import { examine } from '../agent/doctor.js';
import { systemClock } from '../host/clock.js';
import { silentLog } from '../host/log.js';
import { withNode } from './display-client.js';
import { endAnyway } from './end-anyway.js';
import { outputOption, print, type Output } from './output.js';
import { addRunFlags, givenRunFlags } from './run-options.js';
import { agentConfig, flagValues } from './run-flags.js';
import { printable } from './terminal-text.js';

const MARKS: Readonly<Record<Diagnosis['state'], string>> = {
  ok: 'ok',
  warning: 'warning',
  failed: 'FAILED',
  skipped: 'skipped',
};

/**
 * `gpu-manager doctor`: checks everything that a node needs, and prints how to repair each failure. Exits with 1 when a
 * check failed.
 */
export function doctorCommand(): Command {
  const command = new Command('doctor').description(
    'check this node: driver, libraries, kubelet, runtime, control groups, mirror, interposition; takes the flags of run',
  );
  command.addOption(outputOption());
  addRunFlags(command);
  return command.action(async (options: Record<string, string>) => {
    const config = agentConfig(flagValues(givenRunFlags(options), process.env), process.env);
    const output = options.output as Output;
    const isTable = output === 'table' || output === 'wide';
    const agentWaitsFor = () =>
      withNode(config.displaySocket, async (node) => (await node.snapshot()).notReady).catch(() => null);
    const found: Diagnosis[] = [];
    for await (const diagnosis of examine({ config, clock: systemClock, log: silentLog(), agentWaitsFor })) {
      found.push(diagnosis);
      if (isTable) process.stdout.write(lines(diagnosis));
    }
    await print(output, { document: () => found, table: () => '' });
    if (found.some(({ state }) => state === 'failed')) process.exitCode = 1;
    endAnyway();
  });
}

function lines({ check, state, what, advice }: Diagnosis): string {
  const todo = advice === null ? '' : `${' '.repeat(24)}-> ${advice}\n`;
  return `${MARKS[state].padEnd(8)} ${check.padEnd(14)} ${printable(what)}\n${todo}`;
}
