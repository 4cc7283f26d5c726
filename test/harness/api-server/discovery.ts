import type { Json } from './kube-object.js';
import { apiVersionOf, groupPath, type ResourceType } from './resource-type.js';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** Answers the discovery requests of clients such as kubectl; null for other paths. */
export function discover(types: readonly ResourceType[], path: string): Json | string | null {
  switch (path) {
    case '/healthz':
    case '/livez':
    case '/readyz':
      return 'ok';
    case '/version':
      return { major: '1', minor: '36', gitVersion: 'v1.36.0-test', platform: 'linux/amd64' };
    case '/api':
      return { kind: 'APIVersions', versions: ['v1'] };
    case '/apis': {
      const groups = [...new Set(types.map((type) => type.group))].filter((group) => group !== '');
      return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map((group) => groupOf(types, group)) };
    }
    default: {
      const group = /^\/apis\/([^/]+)$/.exec(path)?.[1];
      if (group !== undefined && types.some((type) => type.group === group))
        return { kind: 'APIGroup', apiVersion: 'v1', ...(groupOf(types, group) as object) };
      return resourcesOf(types.filter((type) => groupPath(type) === path));
    }
  }
}

function groupOf(types: readonly ResourceType[], group: string): Json {
  const versions = [...new Set(types.filter((type) => type.group === group).map((type) => type.version))].map(
    (version) => ({ groupVersion: `${group}/${version}`, version }),
  );
  return { name: group, versions, preferredVersion: versions[0] };
}

function resourcesOf(types: readonly ResourceType[]): Json | null {
  const [first] = types;
  if (first === undefined) return null;
  const resources = types.flatMap((type) => {
    const entry = {
      name: type.plural,
      singularName: type.kind.toLowerCase(),
      namespaced: type.namespaced,
      kind: type.kind,
      verbs: VERBS,
      shortNames: type.shortNames ?? [],
    };
    const status =
      type.statusSubresource === true
        ? [{ ...entry, name: `${type.plural}/status`, verbs: ['get', 'patch', 'update'] }]
        : [];
    const scale =
      type.scale === undefined
        ? []
        : [
            {
              ...entry,
              name: `${type.plural}/scale`,
              group: 'autoscaling',
              version: 'v1',
              kind: 'Scale',
              verbs: ['get', 'patch', 'update'],
            },
          ];
    const eviction =
      type.deletedGracefully === true
        ? [
            {
              ...entry,
              name: `${type.plural}/eviction`,
              group: 'policy',
              version: 'v1',
              kind: 'Eviction',
              verbs: ['create'],
            },
          ]
        : [];
    return [entry, ...status, ...scale, ...eviction];
  });
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf(first), resources };
}
