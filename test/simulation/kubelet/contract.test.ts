import { join } from 'node:path';
import type { Test } from 'tap';
import { KubeletEmulator } from '../../../src/simulation/kubelet/kubelet.js';
import type { EmulatedPod } from '../../../src/simulation/kubelet/pod.js';
import { realKubelet } from '../../e2e/real-kubelet.js';
import { scratchDirectory } from '../../scratch.js';
import { kubeletContract, type Outcome, type TestedKubelet } from './contract.js';

/** The emulated kubelet; it starts its containers one after another, as a kubelet does. */
async function startEmulated(t: Test): Promise<TestedKubelet> {
  const scratch = await scratchDirectory(t);
  const [directory, podResourcesSocket] = [join(scratch, 'plugins'), join(scratch, 'pod-resources.sock')];
  const kubelet = new KubeletEmulator({ directory, podResourcesSocket });
  await kubelet.start();
  t.teardown(() => kubelet.stop());
  return {
    directory,
    podResourcesSocket,
    offers: (kind, count) => kubelet.until(() => kubelet.allocatable(kind) === count),
    run: (pod) => admitAndStart(kubelet, pod),
    remove: async (pod) => kubelet.remove(pod.uid),
    removeAfter: async (pod, begun) => {
      await begun;
      kubelet.remove(pod.uid);
    },
    uidOf: async (pod) => pod.uid,
    restart: () => kubelet.restart(),
  };
}

async function admitAndStart(kubelet: KubeletEmulator, pod: EmulatedPod): Promise<Outcome> {
  const admission = await kubelet.admit(pod);
  if (!admission.ok) return admission;
  for (const { name } of [...pod.initContainers, ...pod.containers])
    try {
      await kubelet.startContainer(pod.uid, name);
    } catch (error) {
      return { ok: false, message: (error as Error).message };
    }
  return { ok: true };
}

kubeletContract({ name: 'emulated', start: startEmulated, listReleases: true });

kubeletContract({
  name: 'real',
  start: process.env.KUBECONFIG_E2E === undefined ? null : realKubelet,
  why: 'KUBECONFIG_E2E names no kubeconfig of a real cluster',
  listReleases: Number(process.env.KUBECONFIG_E2E_MINOR) > 20,
});
