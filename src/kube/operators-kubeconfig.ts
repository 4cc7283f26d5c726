import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds the kubeconfig files as kubectl does: those of KUBECONFIG that exist, or the one in the home directory; empty
 * if there is none. If no file of KUBECONFIG exists, all are returned, so that the error names them.
 */
export function userKubeconfigs(environment: Environment, home: string = homedir()): readonly string[] {
  const named = filesOf(environment);
  const existing = named.filter((file) => existsSync(file));
  if (named.length > 0) return existing.length > 0 ? existing : named;
  const own = join(home, '.kube', 'config');
  return existsSync(own) ? [own] : [];
}

/**
 * The first file that kubectl would read: of KUBECONFIG, or the one in the home directory; null inside a pod without
 * one.
 */
export function operatorsKubeconfig(environment: Environment, home: string = homedir()): string | null {
  const [file = null] = userKubeconfigs(environment, home);
  return file ?? (environment['KUBERNETES_SERVICE_HOST'] === undefined ? join(home, '.kube', 'config') : null);
}

/** The first existing file of KUBECONFIG, or its first entry if no file exists; null if the variable is not set. */
export function namedKubeconfig(environment: Environment): string | null {
  const named = filesOf(environment);
  return named.find((file) => existsSync(file)) ?? named[0] ?? null;
}

function filesOf(environment: Environment): readonly string[] {
  return (environment['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
}
