import type { Clock } from '../host/clock.js';
import { KubeClient } from './client.js';
import { inClusterCredentials, kubeconfigCredentials } from './credentials.js';
import { StartupError } from '../host/startup-error.js';
import { VERSION } from '../host/version.js';

/**
 * A client with the access that a kubeconfig gives, or without one that of the pod we run in. Rejects with a
 * `StartupError` when the credentials are no use; an API server that does not answer is no reason not to start.
 */
export async function openKubeClient(kubeconfig: string | null, clock: Clock): Promise<KubeClient> {
  const credentials = await (
    kubeconfig === null
      ? inClusterCredentials({ clock, environment: process.env })
      : kubeconfigCredentials(kubeconfig, clock)
  ).catch((error: unknown) => {
    throw new StartupError(`${kubeconfig === null ? 'no API server' : '--kubeconfig'}: ${(error as Error).message}`);
  });
  return new KubeClient({ credentials, clock, userAgent: `gpu-manager/${VERSION}` });
}
