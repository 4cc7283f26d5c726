import { badRequest } from './api-failure.js';
import { valueAt, type KubeObject } from './kube-object.js';
import { apiVersionOf, type ResourceType } from './resource-type.js';

export type Predicate = (object: KubeObject) => boolean;

/** `a=b,c!=d` over the selectable fields of the resource; an unknown field is refused, as by the real server. */
export function fieldSelector(type: ResourceType, text: string): Predicate {
  const known = new Set([
    'metadata.name',
    ...(type.namespaced ? ['metadata.namespace'] : []),
    ...(type.selectableFields ?? []),
  ]);
  const terms = text
    .split(',')
    .filter((term) => term !== '')
    .map((term) => {
      const match = /^([^=!]+?)\s*(==|=|!=)\s*(.*)$/.exec(term.trim());
      if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
      const [, field = '', operator, wanted = ''] = match;
      if (!known.has(field))
        throw badRequest(
          `Unable to find "${apiVersionOf(type)}, Resource=${type.plural}" that match label selector "", field selector "${text}": field label not supported: ${field}`,
        );
      return { field, equal: operator !== '!=', wanted };
    });
  return (object) => terms.every(({ field, equal, wanted }) => (asText(valueAt(object, field)) === wanted) === equal);
}

function asText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

type LabelTerm = (labels: Readonly<Record<string, string>>) => boolean;

/** `a=b, c!=d, e in (f, g), h notin (i), j, !k`. */
export function labelSelector(text: string): Predicate {
  const terms = splitTerms(text).map(labelTerm);
  return (object) => terms.every((term) => term(object.metadata.labels ?? {}));
}

function splitTerms(text: string): string[] {
  // A comma inside parentheses separates values, not terms.
  return text
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '');
}

function labelTerm(term: string): LabelTerm {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const values = new Set(list.split(',').map((value) => value.trim()));
    return (labels) =>
      operator === 'in'
        ? key in labels && values.has(labels[key] ?? '')
        : !(key in labels) || !values.has(labels[key] ?? '');
  }
  const pair = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(term);
  if (pair !== null) {
    const [, key = '', operator, value = ''] = pair;
    return (labels) => (operator === '!=' ? labels[key] !== value : labels[key] === value);
  }
  const absent = /^!\s*(\S+)$/.exec(term);
  if (absent !== null) return (labels) => !((absent[1] ?? '') in labels);
  if (!/^[\w./-]+$/.test(term)) throw badRequest(`unable to parse requirement: ${term}`);
  return (labels) => term in labels;
}
