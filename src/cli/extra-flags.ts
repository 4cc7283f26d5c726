/** The flags in EXTRA_FLAGS, which the original's manifest adds to the agent's command line. */
export function extraFlags({ EXTRA_FLAGS: flags = '' }: NodeJS.ProcessEnv): string[] {
  return flags.split(/\s+/).filter((flag) => flag !== '');
}
