import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** Files of access to a cluster. */
export interface Kubeconfig {
  /** Source of the paths, for errors: a flag, a variable, or the place where kubectl looks. */
  readonly origin: '--kubeconfig' | 'KUBECONFIG' | '~/.kube/config';
  /** Of several files, the first that has a name defines it. */
  readonly files: readonly string[];
}

/** The file that a flag names. */
export function flagsKubeconfig(file: string): Kubeconfig {
  return { origin: '--kubeconfig', files: [file] };
}

/**
 * Finds the kubeconfig files as kubectl does: those of KUBECONFIG that exist, or the one in the home directory; null if
 * there is none. If no file of KUBECONFIG exists, all are returned, so that the error names them.
 */
export function userKubeconfig(environment: Environment, home: string = homedir()): Kubeconfig | null {
  const named = filesOf(environment);
  const existing = named.filter((file) => existsSync(file));
  if (named.length > 0) return { origin: 'KUBECONFIG', files: existing.length > 0 ? existing : named };
  const own = homeKubeconfig(home);
  return own.files.every((file) => existsSync(file)) ? own : null;
}

/** The files that kubectl would read; outside a pod, that of the home directory even if it is missing. */
export function operatorsKubeconfig(environment: Environment, home: string = homedir()): Kubeconfig | null {
  const inPod = environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  return userKubeconfig(environment, home) ?? (inPod ? null : homeKubeconfig(home));
}

/** The first existing file of KUBECONFIG, or its first entry if no file exists; null if the variable is not set. */
export function namedKubeconfig(environment: Environment): Kubeconfig | null {
  const named = filesOf(environment);
  const file = named.find((each) => existsSync(each)) ?? named[0];
  return file === undefined ? null : { origin: 'KUBECONFIG', files: [file] };
}

function homeKubeconfig(home: string): Kubeconfig {
  return { origin: '~/.kube/config', files: [join(home, '.kube', 'config')] };
}

function filesOf(environment: Environment): readonly string[] {
  return (environment['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
}
