import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds the kubeconfig as kubectl does: the first existing file of KUBECONFIG, or the one in the home directory; null
 * inside a pod.
 */
export function operatorsKubeconfig(environment: Environment, home: string = homedir()): string | null {
  const named = namedKubeconfig(environment);
  if (named !== null) return named;
  const own = join(home, '.kube', 'config');
  return environment['KUBERNETES_SERVICE_HOST'] === undefined || existsSync(own) ? own : null;
}

/** The first existing file of KUBECONFIG, or its first entry if no file exists; null if the variable is not set. */
export function namedKubeconfig(environment: Environment): string | null {
  const named = (environment['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  return named.find((file) => existsSync(file)) ?? named[0] ?? null;
}
