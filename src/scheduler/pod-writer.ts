/** The pod that is meant: a pod of the same name with another UID is another pod. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * `gone`: no such pod, or one with another UID. `refused`: the API server answered and would answer the same again (another node has it
 * already, not allowed). `unreachable`: it did not answer, or not now; trying again may help.
 */
export type WriteFailure = 'gone' | 'refused' | 'unreachable';

export type WriteResult =
  { readonly ok: true } | { readonly ok: false; readonly code: WriteFailure; readonly reason: string };

/** What the extender writes to the API server. Whoever implements it answers within a few seconds and never rejects. */
export interface PodWriter {
  /**
   * Creates `pods/binding`, with the pod's UID as precondition. The API server copies the annotations of a binding to the pod in the same
   * write: nobody ever sees the pod on its node without them.
   */
  bind(pod: PodName, node: string, annotations: Readonly<Record<string, string>>): Promise<WriteResult>;
  /** Merges annotations into the pod, with its UID as precondition. */
  annotate(pod: PodName, annotations: Readonly<Record<string, string>>): Promise<WriteResult>;
}
