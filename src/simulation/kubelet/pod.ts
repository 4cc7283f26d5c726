import type { ContainerRequest } from '../../gpu/request.js';

/** A container of an emulated pod, with what it asks for. */
export interface EmulatedContainer extends ContainerRequest {
  readonly name: string;
  /** Its environment, which only the API server shows. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A pod as the emulated kubelet is given it. Init containers run before, and one after another. */
export interface EmulatedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly initContainers: readonly EmulatedContainer[];
  readonly containers: readonly EmulatedContainer[];
}
