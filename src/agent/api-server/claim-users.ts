import type { ClaimUser } from '../../gpu/claims/claim-units.js';
import { list, record, text } from '../../kube/json.js';

/**
 * The containers of a pod and the claims that they name. A claim from a template has its real name in the pod's status
 * once it exists. The special claim of extended resources is only in the status.
 */
export function claimUsersOf(object: unknown, podUid: string): ClaimUser[] {
  const metadata = record(record(object).metadata);
  const spec = record(record(object).spec);
  const status = record(record(object).status);
  const made = new Map(
    list(status.resourceClaimStatuses).map((entry) => [
      text(record(entry).name),
      text(record(entry).resourceClaimName),
    ]),
  );
  const claims = new Map(
    list(spec.resourceClaims).map((entry) => {
      const name = text(record(entry).name);
      return [name, text(record(entry).resourceClaimName) || (made.get(name) ?? '')];
    }),
  );
  const extended = record(status.extendedResourceClaimStatus);
  return [...list(spec.initContainers), ...list(spec.containers)].flatMap((container) => {
    const name = text(record(container).name);
    const named = list(record(record(container).resources).claims).map((entry) => ({
      claim: claims.get(text(record(entry).name)) ?? '',
      request: text(record(entry).request) || null,
    }));
    const mapped = list(extended.requestMappings)
      .filter((entry) => text(record(entry).containerName) === name)
      .map((entry) => ({ claim: text(extended.resourceClaimName), request: text(record(entry).requestName) || null }));
    const uses = [...named, ...mapped].filter(({ claim }) => claim !== '');
    if (uses.length === 0) return [];
    return [
      {
        container: { podUid, namespace: text(metadata.namespace), pod: text(metadata.name), container: name },
        uses,
      },
    ];
  });
}
