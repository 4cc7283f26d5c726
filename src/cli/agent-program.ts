import type { Command } from 'commander';
import { declaredArguments } from './command-line.js';
import { addExamples, GPU_MANAGER_EXAMPLES } from './examples.js';
import { newGpuManager, runProgram } from './program.js';
import { runCommand } from './run.js';

/**
 * Runs `gpu-manager run ARGV...`, also without the word `run`. A separate program, so that scripts/bundle.mjs puts it
 * into few files: each file that it shares with other commands takes about a millisecond to load.
 */
export async function gpuManager(argv: readonly string[]): Promise<number> {
  return runProgram(agentProgram(), declaredArguments(argv));
}

function agentProgram(): Command {
  const program = newGpuManager().addCommand(runCommand(), { isDefault: true });
  addExamples(program, GPU_MANAGER_EXAMPLES);
  return program;
}
