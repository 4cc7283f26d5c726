import type { Evaluator, TemplatedPods } from './evaluator.js';
import type { Json, ManifestReader } from './manifest.js';

/** Names of fields one inside the other: `spec.worker.replicas`. */
export type FieldPath = string;

/** Where an object of some kind has pods. */
export interface DeclaredPods {
  /** Role of the pods; of `each`, the field of an item that names it, or the key under which it stands. */
  readonly name?: string | undefined;
  /** A list, or an object with one entry a role: the other paths are then inside its entries. */
  readonly each?: FieldPath | undefined;
  /** One pod without. */
  readonly replicas?: FieldPath | undefined;
  /** Where the replicas are not given: 1 without. */
  readonly defaultReplicas?: number | undefined;
  /** A PodTemplateSpec, or an object with a PodSpec in `spec`. */
  readonly template: FieldPath;
}

/** A kind that is described instead of programmed: any CRD whose pods stand at fixed places. */
export interface DeclaredKind {
  readonly apiGroup: string;
  readonly kind: string;
  /** Plural: `widgets`. */
  readonly plural: string;
  readonly pods: readonly DeclaredPods[];
  /** True there: no pods run. */
  readonly suspend?: FieldPath | undefined;
  /** It is done when the field has one of the values. */
  readonly done?: { readonly field: FieldPath; readonly values: readonly string[] } | undefined;
}

/** An evaluator made of a description. */
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
