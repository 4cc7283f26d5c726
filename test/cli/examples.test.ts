import type { Command } from 'commander';
import { test } from 'tap';
import { GPU_MANAGER_EXAMPLES, KUBECTL_EXAMPLES } from '../../src/cli/examples.js';
import { gpuManagerProgram } from '../../src/cli/gpu-manager.js';
import { kubectlGpuProgram } from '../../src/cli/kubectl/plugin.js';

/** Every command without commands below it, by its words. */
function leaves(program: Command, words: readonly string[] = []): readonly [string, Command][] {
  return program.commands.flatMap((command) => {
    const path = [...words, command.name()];
    return command.commands.length === 0 ? [[path.join(' '), command] as [string, Command]] : leaves(command, path);
  });
}

for (const [name, load, examples] of [
  ['gpu-manager', gpuManagerProgram, GPU_MANAGER_EXAMPLES],
  ['kubectl gpu', kubectlGpuProgram, KUBECTL_EXAMPLES],
] as const) {
  test(`the help of ${name} shows examples for every command, which the command takes`, async (t) => {
    const commands = new Map(leaves(await load(['--help'])));
    for (const [path, lines] of Object.entries(examples)) {
      const command = commands.get(path);
      if (command === undefined) {
        t.fail(`${path} is no command`);
        continue;
      }
      for (const [line] of lines) {
        t.ok(line.startsWith(path), line);
        const words = line.slice(path.length).trim().split(/\s+/);
        const { operands, unknown } = command.parseOptions(words[0] === '' ? [] : words);
        t.same(unknown, [], `${line}: unknown options`);
        const taken = command.registeredArguments;
        t.ok(operands.length >= taken.filter(({ required }) => required).length, `${line}: an argument is missing`);
        t.ok(operands.length <= taken.length || taken.some(({ variadic }) => variadic), `${line}: too many arguments`);
      }
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      t.match(help, /\nExamples:\n/, path);
    }
    const without = [...commands.keys()].filter((path) => !(path in examples) && !/^(__complete|quota )/.test(path));
    t.same(without, [], 'commands without an example');
  });
}
