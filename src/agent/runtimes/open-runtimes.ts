import { closedAtStop, type Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import { RuntimeError } from './container.js';
import { AnnouncedContainers } from './announced-containers.js';
import { nodeContainers, type RuntimeConfig } from './configured-runtime.js';
import { containerKnowledge, type ContainerKnowledge } from './container-knowledge.js';
import { controlGroups, type ControlGroups } from './control-groups.js';
import type { NodeContainers } from './node-containers.js';

export interface RuntimesNeeds {
  readonly config: RuntimeConfig;
  readonly log: Log;
}

/** The containers of this node. */
export interface Runtimes {
  readonly containers: NodeContainers;
  /** Empty until `attach` is called with the containers that the Node Resource Interface announces. */
  readonly announced: AnnouncedContainers;
  readonly knowledge: ContainerKnowledge;
  readonly groups: ControlGroups;
  /** Closes the connection to the container runtime. */
  readonly part: Part;
}

/** Connects to the container runtime at the first question. */
export async function openRuntimes({ config, log }: RuntimesNeeds): Promise<Runtimes> {
  const containers = nodeContainers(config);
  const announced = new AnnouncedContainers();
  return {
    containers,
    announced,
    knowledge: containerKnowledge(containers, announced, log),
    groups: controlGroups({
      pidOf: async (podUid, container) => {
        try {
          return (await containers.ofPod({ podUid, containerName: container }))?.pid ?? null;
        } catch (error) {
          if (error instanceof RuntimeError) return null;
          throw error;
        }
      },
    }),
    part: closedAtStop('containers', () => containers.close()),
  };
}
