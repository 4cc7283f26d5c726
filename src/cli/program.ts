import { Command, CommanderError } from 'commander';
import type { ServiceError } from '@grpc/grpc-js';
import { StartupError } from '../host/startup-error.js';
import { VERSION } from '../host/version.js';

/** 0: success. 1: the command failed. 2: the command line or a file is invalid; nothing was started. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** A program without its commands. */
export function newProgram(name: string, description: string): Command {
  return new Command(name).description(description).version(VERSION, '--version');
}

/** `gpu-manager` without its commands. */
export function newGpuManager(): Command {
  return newProgram('gpu-manager', 'Share GPUs between containers in Kubernetes');
}

/** Runs a program and returns its exit code; errors are printed after `name`. */
export async function runProgram(program: Command, argv: readonly string[], name = program.name()): Promise<number> {
  reportErrorsAs(name, program, name);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return process.exitCode === undefined ? 0 : Number(process.exitCode);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
    if (error instanceof StartupError) {
      console.error(`${name}: ${error.message}`);
      return EXIT_USAGE;
    }
    console.error(`${name}: ${(error as Partial<ServiceError>).details ?? (error as Error).message}`);
    return EXIT_FAILED;
  }
}

/** An error in a command line is one line: the program's name, as in all its errors, what is wrong, and the help. */
function reportErrorsAs(name: string, command: Command, path: string): void {
  const line = (text: string): string =>
    text
      .trim()
      .replace(/^error: /u, '')
      .replaceAll('\n', ' ');
  command.exitOverride().configureOutput({
    outputError: (text, write) => write(`${name}: ${line(text)}; see ${path} --help\n`),
  });
  for (const child of command.commands) reportErrorsAs(name, child, `${path} ${child.name()}`);
}
