/** A resource that an emulated API serves. */
export interface ServedResource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly shortNames?: readonly string[];
}

const ROOT = /^(?:\/api\/(?<core>v1)|\/apis\/(?<group>[^/]+)(?:\/(?<version>[^/]+))?)$/u;

/**
 * The document of discovery at a path: the resources of a version, as `/api/v1`, or the versions of a group, as
 * `/apis/apps`. Null for another path, and for what is not served.
 */
export function discoveryOf(served: readonly ServedResource[], path: string): object | null {
  const groups = ROOT.exec(path)?.groups;
  if (groups === undefined) return null;
  const { core, group = '', version = core } = groups;
  const found = served.filter((each) => each.group === group && (version === undefined || each.version === version));
  const [first] = found;
  if (first === undefined) return null;
  if (version === undefined) {
    const versions = [...new Set(found.map((each) => each.version))].map((name) => ({
      groupVersion: `${group}/${name}`,
      version: name,
    }));
    return { kind: 'APIGroup', name: group, versions, preferredVersion: versions[0] };
  }
  return {
    kind: 'APIResourceList',
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: found.map(({ plural: name, kind, shortNames = [] }) => ({
      ...{ name, kind, shortNames, namespaced: true, singularName: kind.toLowerCase() },
      verbs: ['get', 'list', 'watch'],
    })),
  };
}
