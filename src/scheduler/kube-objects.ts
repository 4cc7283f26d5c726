/**
 * What the extender reads of pods and nodes, in the API's own JSON form. Everything may be missing: bodies come from schedulers of many
 * versions, files from people.
 */
export interface ObjectMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Set while the object is being deleted; client libraries make a date of it. */
  readonly deletionTimestamp?: unknown;
}

export interface ContainerSpec {
  readonly name?: string;
  /** `Always` makes an init container a sidecar. */
  readonly restartPolicy?: string;
  readonly resources?: {
    readonly limits?: Readonly<Record<string, string | number>>;
    readonly requests?: Readonly<Record<string, string | number>>;
  };
}

export interface LabelRequirement {
  readonly key?: string;
  readonly operator?: string;
  readonly values?: readonly string[];
}

export interface PodObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly nodeName?: string;
    readonly priority?: number;
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly affinity?: {
      readonly nodeAffinity?: {
        readonly requiredDuringSchedulingIgnoredDuringExecution?: {
          readonly nodeSelectorTerms?: readonly {
            readonly matchExpressions?: readonly LabelRequirement[];
            readonly matchFields?: readonly LabelRequirement[];
          }[];
        };
      };
    };
    readonly overhead?: Readonly<Record<string, string | number>>;
    readonly initContainers?: readonly ContainerSpec[];
    readonly containers?: readonly ContainerSpec[];
  };
  readonly status?: { readonly phase?: string; readonly nominatedNodeName?: string };
}

export interface NodeObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly capacity?: Readonly<Record<string, string | number>>;
    readonly allocatable?: Readonly<Record<string, string | number>>;
  };
}
