import { Command } from 'commander';
import type { Diagnosis } from '../agent/doctor/diagnosis.js';
import { examine } from '../agent/doctor/doctor.js';
import { systemClock } from '../host/clock.js';
import { silentLog } from '../host/log.js';
import { diagnosisText, resultText } from './diagnosis-text.js';
import { withNode } from './display-client.js';
import { endAnyway } from './end-anyway.js';
import { outputOption, print, type Output } from './output.js';
import { addRunFlags, givenRunFlags } from './run-options.js';
import { agentConfig } from './run-config.js';
import { flagValues } from './run-flags.js';

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
    const agentWaitsFor = () =>
      withNode(config.displaySocket, async (node) => (await node.snapshot()).notReady).catch(() => null);
    const found: Diagnosis[] = [];
    for await (const diagnosis of examine({ config, clock: systemClock, log: silentLog(), agentWaitsFor })) {
      found.push(diagnosis);
    }
    await print(output, {
      document: () => found,
      table: () => [`${resultText(found)}\n\n`, ...found.map(diagnosisText)].join(''),
    });
    if (found.some(({ state }) => state === 'failed')) process.exitCode = 1;
    endAnyway();
  });
}
