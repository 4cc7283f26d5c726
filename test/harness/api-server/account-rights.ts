import type { ApiRequest } from './api-request.js';
import type { KubeObject } from './kube-object.js';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
}

/**
 * Whether the roles and bindings among these objects allow a service account (`system:serviceaccount:NAMESPACE:NAME`) a
 * request. Of two objects of one kind, namespace and name the later one counts, as if both had been applied.
 */
export function accountRights(objects: readonly KubeObject[]): (user: string, request: ApiRequest) => boolean {
  const applied = new Map(
    objects.map((object) => [`${object.kind} ${object.metadata.namespace ?? ''} ${object.metadata.name}`, object]),
  );
  const bindings = [...applied.values()].filter(({ kind }) => kind?.endsWith('RoleBinding') === true) as Binding[];
  return (user, request) =>
    bindings.some(({ metadata, roleRef, subjects }) => {
      const isBound = subjects.some(
        ({ kind, name, namespace }) =>
          kind === 'ServiceAccount' && user === `system:serviceaccount:${namespace}:${name}`,
      );
      const within = metadata.namespace ?? null;
      if (!isBound || (within !== null && request.namespace !== within)) return false;
      const role = applied.get(`${roleRef.kind} ${roleRef.kind === 'Role' ? within : ''} ${roleRef.name}`);
      const { rules = [] } = (role ?? {}) as { readonly rules?: readonly Rule[] };
      return rules.some((rule) => allows(rule, request));
    });
}

function allows({ apiGroups, resources, verbs, resourceNames }: Rule, request: ApiRequest): boolean {
  const { type, subresource, name, verb } = request;
  const resource = subresource === '' ? type.plural : `${type.plural}/${subresource}`;
  return (
    apiGroups.includes(type.group) &&
    resources.includes(resource) &&
    verbs.includes(verb) &&
    (resourceNames === undefined || (name !== null && resourceNames.includes(name)))
  );
}
