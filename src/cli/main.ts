#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import type { ServiceError } from '@grpc/grpc-js';
import { StartupError } from '../app/startup-error.js';
import { VERSION } from '../app/version.js';
import { completionCommand } from './completion.js';
import { demoCommand } from './demo.js';
import { doctorCommand } from './doctor.js';
import { eventsCommand } from './events.js';
import { extenderCommand } from './extender.js';
import { graphCommand } from './graph.js';
import { limitsCommand } from './limits.js';
import { quotaCommand } from './quota.js';
import { runCommand } from './run.js';
import { topCommand } from './top.js';
import { topologyCommand } from './topology.js';
import { usageCommand } from './usage.js';
import { versionCommand } from './version.js';

/** 0: done. 1: it did not work out. 2: asked for something that cannot be: nothing was started. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

async function main(argv: readonly string[]): Promise<number> {
  const program = new Command('gpu-manager')
    .description('Share GPUs between containers in Kubernetes')
    .version(VERSION, '--version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text) });
  program.addCommand(runCommand(), { isDefault: true });
  program.addCommand(graphCommand());
  program.addCommand(usageCommand());
  program.addCommand(topCommand());
  program.addCommand(limitsCommand());
  program.addCommand(eventsCommand());
  program.addCommand(doctorCommand());
  program.addCommand(versionCommand());
  program.addCommand(demoCommand());
  program.addCommand(topologyCommand());
  program.addCommand(extenderCommand());
  program.addCommand(quotaCommand());
  program.addCommand(completionCommand(() => program));
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync(argv.map(normalise), { from: 'user' });
    return process.exitCode === undefined ? 0 : Number(process.exitCode);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
    if (error instanceof StartupError) {
      console.error(`gpu-manager: ${error.message}`);
      return EXIT_USAGE;
    }
    console.error(`gpu-manager: ${(error as Partial<ServiceError>).details ?? (error as Error).message}`);
    return EXIT_FAILED;
  }
}

/** The original takes underscores in flag names for dashes. */
function normalise(argument: string): string {
  const [name, ...value] = argument.split('=');
  if (name?.startsWith('--') !== true) return argument;
  return [name.replaceAll('_', '-'), ...value].join('=');
}

process.exitCode = await main(process.argv.slice(2));
