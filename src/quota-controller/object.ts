/** What of a Kubernetes object is looked at here; the server checked the rest. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly OwnerReference[];
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** A resourceVersion as a number, by which two states of one object can be ordered; 0 where it is none. */
export function versionOf(object: KubeObject | null): number {
  const version = Number(object?.metadata?.resourceVersion ?? 0);
  return Number.isSafeInteger(version) ? version : 0;
}
