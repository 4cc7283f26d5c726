import { Environment } from '@marcbachmann/cel-js';
import { isJsonObject, type Json, type KubeObject } from './kube-object.js';

/** A structural schema of a custom resource: the OpenAPI keywords that this project uses. */
export interface CustomSchema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly properties?: Readonly<Record<string, CustomSchema>>;
  readonly additionalProperties?: CustomSchema | boolean;
  readonly items?: CustomSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly nullable?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-validations'?: readonly { readonly rule: string; readonly message?: string }[];
}

/** The path of an invalid field: `spec.hard`. */
export interface SchemaProblem {
  readonly path: string;
  readonly message: string;
}

/** Fields of the object itself that a schema need not name. */
const OWN_FIELDS = ['apiVersion', 'kind', 'metadata'];

const language = new Environment({ unlistedVariablesAreDyn: true });
const programs = new Map<string, (variables: object) => unknown>();

function programOf(rule: string): (variables: object) => unknown {
  const program = programs.get(rule) ?? language.parse(rule);
  programs.set(rule, program);
  return program;
}

/**
 * Applies a schema to a sent object, and returns the stored object and its errors: unknown fields are dropped silently;
 * values are checked, then the rules (CEL), of which those with `oldSelf` apply to updates only.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
 */
export function conformed(
  schema: CustomSchema,
  object: KubeObject,
  old: KubeObject | null,
): { readonly object: KubeObject; readonly problems: readonly SchemaProblem[] } {
  const whole: CustomSchema = {
    ...schema,
    properties: {
      ...schema.properties,
      ...Object.fromEntries(OWN_FIELDS.map((name) => [name, { 'x-kubernetes-preserve-unknown-fields': true }])),
    },
  };
  const kept = pruned(whole, object) as KubeObject;
  const problems = check(whole, kept, '');
  return { object: kept, problems: problems.length > 0 ? problems : broken(whole, kept, old ?? undefined, '') };
}

function pruned(schema: CustomSchema, value: unknown): unknown {
  if (Array.isArray(value))
    return schema.items === undefined ? value : value.map((item) => pruned(schema.items as CustomSchema, item));
  if (!isJsonObject(value) || schema['x-kubernetes-preserve-unknown-fields'] === true) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      const known = fieldOf(schema, name);
      return known === null ? [] : [[name, known === true ? field : pruned(known, field)]];
    }),
  );
}

/** The schema of a field; true where any value is allowed, null where the field is unknown. */
function fieldOf({ properties, additionalProperties }: CustomSchema, name: string): CustomSchema | true | null {
  return (
    properties?.[name] ??
    (additionalProperties === undefined || additionalProperties === false ? null : additionalProperties)
  );
}

function check(schema: CustomSchema, value: unknown, path: string): readonly SchemaProblem[] {
  const wrong = (message: string): SchemaProblem[] => [{ path, message }];
  if (value === null) return schema.nullable === true ? [] : wrong('Invalid value: "null": must not be null');
  if (schema['x-kubernetes-int-or-string'] === true && typeof value !== 'string' && !Number.isInteger(value))
    return wrong(`Invalid value: ${JSON.stringify(value)}: must be of type integer or string`);
  if (schema.type !== undefined && typeOf(value, schema.type) !== schema.type)
    return wrong(`Invalid value: ${JSON.stringify(value)}: must be of type ${schema.type}`);
  if (schema.enum?.includes(value) === false)
    return wrong(
      `Unsupported value: ${JSON.stringify(value)}: supported values: ${schema.enum.map((each) => JSON.stringify(each)).join(', ')}`,
    );
  if (typeof value === 'string') return textProblem(schema, value).flatMap(wrong);
  if (typeof value === 'number') {
    if (schema.minimum !== undefined && value < schema.minimum)
      return wrong(`Invalid value: ${value}: should be greater than or equal to ${schema.minimum}`);
    return schema.maximum !== undefined && value > schema.maximum
      ? wrong(`Invalid value: ${value}: should be less than or equal to ${schema.maximum}`)
      : [];
  }
  if (Array.isArray(value)) {
    if (schema.maxItems !== undefined && value.length > schema.maxItems)
      return wrong(`Too many: ${value.length}: must have at most ${schema.maxItems} items`);
    return schema.items === undefined
      ? []
      : value.flatMap((item, index) => check(schema.items as CustomSchema, item, `${path}[${index}]`));
  }
  return isJsonObject(value) ? fieldProblems(schema, value, path) : [];
}

function textProblem({ minLength, maxLength, pattern, format }: CustomSchema, text: string): readonly string[] {
  if (maxLength !== undefined && [...text].length > maxLength) return [`Too long: may not be longer than ${maxLength}`];
  if (minLength !== undefined && [...text].length < minLength)
    return [`Invalid value: "${text}": should be at least ${minLength} chars long`];
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text))
    return [`Invalid value: "${text}": should match '${pattern}'`];
  return format === 'date-time' && !/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text)
    ? [`Invalid value: "${text}": must be of type date-time`]
    : [];
}

function fieldProblems(schema: CustomSchema, value: Json, path: string): readonly SchemaProblem[] {
  const missing = (schema.required ?? [])
    .filter((name) => !(name in value))
    .map((name) => ({ path: join(path, name), message: 'Required value' }));
  const names = Object.keys(value);
  const many =
    schema.maxProperties !== undefined && names.length > schema.maxProperties
      ? [{ path, message: `Too many: ${names.length}: must have at most ${schema.maxProperties} items` }]
      : [];
  return [
    ...missing,
    ...many,
    ...names.flatMap((name) => {
      const field = fieldOf(schema, name);
      return field === null || field === true ? [] : check(field, value[name], join(path, name));
    }),
  ];
}

/** The violated rules. */
function broken(schema: CustomSchema, value: unknown, old: unknown, path: string): readonly SchemaProblem[] {
  const own = (schema['x-kubernetes-validations'] ?? []).flatMap(({ rule, message }): SchemaProblem[] => {
    const isTransition = /\boldSelf\b/.test(rule);
    if (isTransition && old === undefined) return [];
    const holds = programOf(rule)({
      self: celValue(schema, value),
      ...(isTransition ? { oldSelf: celValue(schema, old) } : {}),
    });
    return holds === true ? [] : [{ path, message: `Invalid value: ${message ?? `failed rule: ${rule}`}` }];
  });
  if (Array.isArray(value))
    return [
      ...own,
      ...value.flatMap((item, index) =>
        schema.items === undefined ? [] : broken(schema.items, item, undefined, `${path}[${index}]`),
      ),
    ];
  if (!isJsonObject(value)) return own;
  const before = isJsonObject(old) ? old : {};
  return [
    ...own,
    ...Object.entries(value).flatMap(([name, field]) => {
      const known = fieldOf(schema, name);
      return known === null || known === true ? [] : broken(known, field, before[name], join(path, name));
    }),
  ];
}

/** Integers of the schema are integers in the rules. */
function celValue(schema: CustomSchema, value: unknown): unknown {
  if (typeof value === 'number')
    return schema.type === 'integer' || (schema['x-kubernetes-int-or-string'] === true && Number.isInteger(value))
      ? BigInt(value)
      : value;
  if (Array.isArray(value)) return value.map((item) => celValue(schema.items ?? {}, item));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const known = fieldOf(schema, name);
      return [name, known === null || known === true ? field : celValue(known, field)];
    }),
  );
}

function typeOf(value: unknown, wanted: CustomSchema['type']): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) && wanted === 'integer' ? 'integer' : 'number';
  return typeof value;
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
