import { Argument, Command } from 'commander';

/** `gpu-manager completion bash|zsh|fish`: a shell script that completes commands, flags and their values. */
export function completionCommand(program: () => Command): Command {
  return new Command('completion')
    .description('print a script that completes commands and flags: source <(gpu-manager completion bash)')
    .addArgument(new Argument('<shell>').choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => {
      process.stdout.write(SCRIPTS[shell](program()));
    });
}

/** The completions after a command: its path from the program (`limits set`), words, and values of its flags. */
export interface Place {
  readonly path: string;
  readonly words: readonly string[];
  /** By flag name. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

export function placesOf(command: Command, path: readonly string[] = []): Place[] {
  const options = command.options.filter((option) => !option.hidden);
  const flags = options.flatMap((option) => [option.long, option.short].filter((flag) => flag !== undefined));
  const values = options.flatMap(({ long, short, argChoices }) =>
    argChoices === undefined
      ? []
      : [long, short].flatMap((flag) => (flag === undefined ? [] : [[flag, argChoices] as const])),
  );
  const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? []);
  const own = {
    path: path.join(' '),
    words: [
      ...command.commands.map((sub) => sub.name()),
      ...choices,
      ...flags.filter((flag) => flag.startsWith('--')),
      '--help',
    ],
    values: new Map(values),
  };
  return [own, ...command.commands.flatMap((sub) => placesOf(sub, [...path, sub.name()]))];
}

/** Lines of a shell's `case`, in the same form for both shells. */
function cases(
  places: readonly Place[],
  say: (words: readonly string[]) => string,
): { readonly walk: string; readonly values: string; readonly words: string } {
  const quoted = (text: string): string => `'${text}'`;
  return {
    walk: places.flatMap(({ path }) => (path === '' ? [] : [quoted(path.includes(' ') ? path : ` ${path}`)])).join('|'),
    values: places
      .flatMap(({ path, values }) =>
        [...values].map(([flag, choices]) => `    ${quoted(`${path}:${flag}`)}) ${say(choices)}; return ;;`),
      )
      .join('\n'),
    words: places.map(({ path, words }) => `    ${quoted(path)}) ${say(words)} ;;`).join('\n'),
  };
}

/** For `complete`, in bash 4 and later. Without a match, file names are completed. */
function bashCompletion(program: Command): string {
  const { walk, values, words } = cases(
    placesOf(program),
    (list) => `COMPREPLY=($(compgen -W '${list.join(' ')}' -- "$current"))`,
  );
  return `# gpu-manager completion for bash
_gpu_manager() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" place='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
      ${walk}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place:$previous" in
${values}
  esac
  case "$place" in
${words}
  esac
}
complete -o default -F _gpu_manager gpu-manager
`;
}

/** For zsh's completion system. */
function zshCompletion(program: Command): string {
  const { walk, values, words } = cases(placesOf(program), (list) => `compadd -- ${list.join(' ')}`);
  return `#compdef gpu-manager
_gpu_manager() {
  local previous="\${words[CURRENT-1]}" place='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      (${walk}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place:$previous" in
${values}
  esac
  case "$place" in
${words}
  esac
  _files
}
compdef _gpu_manager gpu-manager
`;
}

/** For fish 3 and later: one line for each place and each flag with fixed values. */
function fishCompletion(program: Command): string {
  const places = placesOf(program);
  const walk = places.flatMap(({ path }) => (path === '' ? [] : [`'${path}'`])).join(' ');
  const lines = places.flatMap(({ path, words, values }) => [
    `complete -c gpu-manager -f -n "__gpu_manager_at '${path}'" -a '${words.join(' ')}'`,
    ...[...values].map(
      ([flag, choices]) =>
        `complete -c gpu-manager -f -n "__gpu_manager_value '${path}' '${flag}'" -a '${choices.join(' ')}'`,
    ),
  ]);
  return `# gpu-manager completion for fish
function __gpu_manager_place
  set -l place ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$place $word")
    if contains -- "$next" ${walk}
      set place $next
    end
  end
  echo $place
end
function __gpu_manager_at
  test (__gpu_manager_place) = "$argv[1]"
end
function __gpu_manager_value
  __gpu_manager_at "$argv[1]"; and test (commandline -opc)[-1] = "$argv[2]"
end
complete -c gpu-manager -e
${lines.join('\n')}
`;
}

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;
