import type { Evaluator, TemplatedPods } from './evaluator.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/** Path of nested fields, such as `spec.worker.replicas`. */
export type FieldPath = string;

/** The fields that define pods of a kind. */
export interface DeclaredPods {
  /** Role of the pods; with `each`, the field of an item with the role, or by default the item's key. */
  readonly name?: string | undefined;
  /** A list, or an object with one entry per role; the other paths are relative to its entries. */
  readonly each?: FieldPath | undefined;
  /** By default one pod. */
  readonly replicas?: FieldPath | undefined;
  /** Number of pods if `replicas` is not set; default 1. */
  readonly defaultReplicas?: number | undefined;
  /** A PodTemplateSpec, or an object with a PodSpec in `spec`. */
  readonly template: FieldPath;
}

/** A kind that is described instead of programmed: any custom resource with pods at fixed paths. */
export interface DeclaredKind {
  readonly apiGroup: string;
  readonly kind: string;
  /** Plural, such as `widgets`. */
  readonly plural: string;
  readonly pods: readonly DeclaredPods[];
  /** If this field is true, no pods run. */
  readonly suspend?: FieldPath | undefined;
  /** The object is finished when the field has one of these values. */
  readonly done?: { readonly field: FieldPath; readonly values: readonly string[] } | undefined;
}

/** Creates an evaluator from a description. */
export function declaredKind(declared: DeclaredKind): Evaluator {
  const { apiGroup, kind, plural, suspend, done } = declared;
  return {
    apiGroup,
    kind,
    resource: apiGroup === '' ? plural : `${plural}.${apiGroup}`,
    charges: true,
    pods(reader, object) {
      const isSuspended = suspend !== undefined && reader.flag(field(reader, object, suspend));
      const all = declared.pods.flatMap((pods) => podsOf(reader, object, pods));
      return isSuspended ? all.map((pods) => ({ ...pods, count: 0 })) : all;
    },
    ...(done === undefined
      ? {}
      : {
          isTerminal: (reader, object) =>
            done.values.includes(reader.text(field(reader, object, done.field), done.field)),
        }),
  };
}

function podsOf(reader: ManifestReader, object: Json, declared: DeclaredPods): readonly TemplatedPods[] {
  const { each, replicas, template, name = '', defaultReplicas = 1 } = declared;
  const one = (within: Json, role: string, path: string): TemplatedPods => ({
    name: role,
    count:
      replicas === undefined
        ? defaultReplicas
        : reader.count(field(reader, within, replicas), `${path}${replicas}`, defaultReplicas),
    template: field(reader, within, template),
    path: `${path}${template}`,
  });
  if (each === undefined) return [one(object, name, '')];
  const entries = field(reader, object, each);
  if (!Array.isArray(entries))
    return reader.fields(entries, each).map(([role, entry]) => one(entry, role, `${each}.${role}.`));
  return (entries as readonly Json[]).map((entry, index) =>
    one(
      entry,
      reader.text(field(reader, entry, name), `${each}[${index}].${name}`) || `${index}`,
      `${each}[${index}].`,
    ),
  );
}

function field(reader: ManifestReader, object: Json, path: FieldPath): Json {
  return path === '' ? undefined : reader.at(object, ...path.split('.'));
}
