import type { ServiceError } from '@grpc/grpc-js';
import type { NodeSnapshot } from '../../agent/node/view.js';
import { connectionProblem, UNIMPLEMENTED } from '../display-client.js';
import type { NodeClient } from '../node-client.js';
import type { Sample, SampleSource } from './sample.js';

/** Samples of this node, from its agent. */
export function nodeSource(socketPath: string, node: NodeClient): SampleSource {
  return {
    async sample() {
      try {
        return { ok: true, sample: sampleOf(await node.snapshot()) };
      } catch (error) {
        return { ok: false, reason: reasonOf(socketPath, error) };
      }
    },
    async processes({ allocation }) {
      try {
        return { known: true, document: await node.processes(allocation.id) };
      } catch (error) {
        const { code } = error as { readonly code?: number };
        const old = code === UNIMPLEMENTED;
        return {
          known: false,
          reason: old ? 'this agent is too old to tell users and commands' : reasonOf(socketPath, error),
        };
      }
    },
  };
}

/** The message for a failed call; rethrows other errors. */
function reasonOf(socketPath: string, error: unknown): string {
  const { code, details } = error as Partial<ServiceError>;
  if (typeof code !== 'number') throw error;
  return connectionProblem(socketPath, { code, details: details ?? '' }) ?? `the agent refused: ${details ?? code}`;
}

export function sampleOf(snapshot: NodeSnapshot): Sample {
  const { atMs, node, version, driverVersion } = snapshot;
  return {
    atMs,
    title: `${node}  gpu-manager ${version}  driver ${driverVersion ?? '-'}`,
    nodes: [{ name: node, snapshot, problem: '' }],
  };
}
