import { KubeError } from '../../kube/failure.js';
import type { SampleSource } from '../top/sample.js';
import type { GpuNode } from './gpu-cluster.js';

/**
 * Samples of several nodes, through the API server. `read` gives the nodes, which must all exist the first time; it may
 * reject with a `KubeError`.
 */
export function clusterSource(read: (mustExist: boolean) => Promise<readonly GpuNode[]>): SampleSource {
  const agents = new Map<string, string>();
  let isFirst = true;
  return {
    async sample() {
      let nodes: readonly GpuNode[];
      try {
        nodes = await read(isFirst);
        isFirst = false;
      } catch (error) {
        if (error instanceof KubeError) return { ok: false, reason: error.message };
        throw error;
      }
      for (const { node, agent } of nodes)
        if (agent !== null) agents.set(node.name, `--namespace ${agent.namespace} exec -it ${agent.name}`);
      return { ok: true, sample: { atMs: Date.now(), title: titleOf(nodes), nodes: nodes.map(nodeSample) } };
    },
    async processes({ node }) {
      const agent = agents.get(node) ?? 'exec -it AGENT';
      return { known: false, reason: `users and commands are shown on the node: kubectl ${agent} -- gpu-manager top` };
    },
  };
}

function nodeSample({ node, snapshot, problem }: GpuNode) {
  return { name: node.name, snapshot, problem };
}

function titleOf(nodes: readonly GpuNode[]): string {
  const gpus = nodes.reduce((sum, { snapshot }) => sum + (snapshot?.gpus.length ?? 0), 0);
  return `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}  ${gpus} GPUs`;
}
