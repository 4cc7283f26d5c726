import type { Command } from 'commander';
import { declaredArguments } from './command-line.js';
import { addExamples, GPU_MANAGER_EXAMPLES } from './examples.js';
import { newGpuManager, runProgram } from './program.js';
import { runCommand } from './run.js';

/**
 * Runs `gpu-manager run ARGV...`, also without the word `run`. A program of its own, because scripts/bundle.mjs makes a
 * few files of it: each file that commands share takes about a millisecond to load.
 */
export async function gpuManager(argv: readonly string[]): Promise<number> {
  return runProgram(agentProgram(), declaredArguments(argv));
}

export function agentProgram(): Command {
  const program = newGpuManager().addCommand(runCommand(), { isDefault: true });
  addExamples(program, GPU_MANAGER_EXAMPLES);
  return program;
}
