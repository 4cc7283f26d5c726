import { status, type ServiceError } from '@grpc/grpc-js';
import { StartupError } from '../host/startup-error.js';
import { withAgent } from './display-client.js';

/** How a command line names a container of this node. */
export const CONTAINER_NAME = 'pod, namespace/pod, namespace/pod/container, or an allocation id';

interface Named {
  readonly allocation: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** The container that the name means; throws a StartupError if there is none, or several. */
export function namedContainer<C extends Named>(containers: readonly C[], name: string): C {
  const names = (one: C): string[] => [
    one.allocation,
    one.pod,
    `${one.namespace}/${one.pod}`,
    `${one.namespace}/${one.pod}/${one.container}`,
  ];
  const [only, ...others] = containers.filter((one) => names(one).includes(name));
  if (only === undefined) throw new StartupError(`no running container ${name} on this node`);
  if (others.length === 0) return only;
  throw new StartupError(
    `${name} is ambiguous; it may mean any of ${[only, ...others].map((one) => names(one).at(-1)).join(', ')}`,
  );
}

/** Codes of the agent's refusals; a refused request changes nothing. */
const REFUSALS: ReadonlySet<status> = new Set([status.NOT_FOUND, status.FAILED_PRECONDITION, status.INVALID_ARGUMENT]);

/** Calls `work` with a client of the agent; a refusal of the agent is a StartupError. */
export async function withOperator<C extends { close(): void }>(
  socketPath: string,
  client: C,
  work: (client: C) => Promise<void>,
): Promise<void> {
  try {
    await withAgent(socketPath, client, work);
  } catch (error) {
    const { code, details } = error as Partial<ServiceError>;
    if (code !== undefined && REFUSALS.has(code)) throw new StartupError(details ?? 'refused');
    throw error;
  }
}
