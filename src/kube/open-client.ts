import { fileReason } from '../host/file-reason.js';
import type { Clock } from '../host/clock.js';
import { KubeClient } from './client.js';
import { inClusterCredentials, kubeconfigCredentials } from './credentials.js';
import { StartupError } from '../host/startup-error.js';
import { flagsKubeconfig, namedKubeconfig, userKubeconfig, type Kubeconfig } from './operators-kubeconfig.js';
import { VERSION } from '../host/version.js';

/**
 * Opens a client with the credentials of `kubeconfig`; a path is that of the flag. If it is null, it uses the service
 * account inside a pod, and KUBECONFIG outside a pod. Rejects with a `StartupError` if the credentials are unusable; an
 * API server that does not answer is not an error here.
 */
export async function openKubeClient(kubeconfig: Kubeconfig | string | null, clock: Clock): Promise<KubeClient> {
  const inPod = process.env.KUBERNETES_SERVICE_HOST !== undefined;
  const given = typeof kubeconfig === 'string' ? flagsKubeconfig(kubeconfig) : kubeconfig;
  const source = given ?? (inPod ? null : namedKubeconfig(process.env));
  const credentials = await (
    source === null
      ? inClusterCredentials({ clock, environment: process.env })
      : kubeconfigCredentials(source.files, clock)
  ).catch((error: unknown) => {
    throw new StartupError(`${source?.origin ?? 'no API server'}: ${reasonOf(error)}`);
  });
  return new KubeClient({ credentials, clock, userAgent: `gpu-manager/${VERSION}` });
}

/** The cluster that a person names on the command line. */
export interface ClusterAccess {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/**
 * Opens a client as kubectl does: `--kubeconfig`, the files of KUBECONFIG, the file in the home directory, or inside a
 * pod its service account. Rejects with a `StartupError` if the credentials are unusable.
 */
export async function openUserClient(
  { kubeconfig, context }: ClusterAccess,
  clock: Clock,
): Promise<{ readonly client: KubeClient; readonly namespace: string | null }> {
  const source = kubeconfig === undefined ? userKubeconfig(process.env) : flagsKubeconfig(kubeconfig);
  if (source === null) {
    if (process.env.KUBERNETES_SERVICE_HOST === undefined || context !== undefined)
      throw new StartupError('no kubeconfig: set KUBECONFIG, or give --kubeconfig');
    return { client: await openKubeClient(null, clock), namespace: null };
  }
  const credentials = await kubeconfigCredentials(source.files, clock, context ?? null).catch((error: unknown) => {
    throw new StartupError(`${source.origin}: ${reasonOf(error)}`);
  });
  return {
    client: new KubeClient({ credentials, clock, userAgent: `gpu-manager/${VERSION}` }),
    namespace: credentials.namespace,
  };
}

/** Names the file of an error that has one: a kubeconfig names further files. */
function reasonOf(error: unknown): string {
  const { path } = error as NodeJS.ErrnoException;
  return path === undefined ? fileReason(error) : `${path}: ${fileReason(error)}`;
}
