/** Paths of the API, with names encoded. */
export const ALL_PODS = '/api/v1/pods';

/** Pods of one namespace. */
export function podsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
}

export function podPath(namespace: string, name: string): string {
  return `${podsPath(namespace)}/${encodeURIComponent(name)}`;
}

/** A path of an HTTP server in a pod, through the proxy of the API server. */
export function podProxyPath(
  { namespace, name, scheme, port }: { namespace: string; name: string; scheme: 'http' | 'https'; port: number },
  path: string,
): string {
  const target = `${scheme === 'https' ? 'https:' : ''}${name}:${port}`;
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${target}/proxy${path}`;
}

/** Requests for tokens of a service account. */
export function accountTokenPath(namespace: string, account: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${encodeURIComponent(account)}/token`;
}

export function namespacePath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
}

export function eventsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
}

/** Events of all namespaces. */
export const ALL_EVENTS = '/api/v1/events';

export function nodePath(name: string): string {
  return `/api/v1/nodes/${encodeURIComponent(name)}`;
}

export const ALL_NODES = '/api/v1/nodes';

export function bindingPath(namespace: string, pod: string): string {
  return `${podPath(namespace, pod)}/binding`;
}

export const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';

export const SUBJECT_ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

export const SELF_SUBJECT_ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

const RESOURCE_API = '/apis/resource.k8s.io/v1';

export const ALL_RESOURCE_SLICES = `${RESOURCE_API}/resourceslices`;

export function resourceSlicePath(name: string): string {
  return `${ALL_RESOURCE_SLICES}/${encodeURIComponent(name)}`;
}

export const ALL_RESOURCE_CLAIMS = `${RESOURCE_API}/resourceclaims`;

export function resourceClaimsPath(namespace: string): string {
  return `${RESOURCE_API}/namespaces/${encodeURIComponent(namespace)}/resourceclaims`;
}

export function resourceClaimPath(namespace: string, name: string): string {
  return `${resourceClaimsPath(namespace)}/${encodeURIComponent(name)}`;
}

export const ALL_CLAIM_TEMPLATES = `${RESOURCE_API}/resourceclaimtemplates`;

export function claimTemplatesPath(namespace: string): string {
  return `${RESOURCE_API}/namespaces/${encodeURIComponent(namespace)}/resourceclaimtemplates`;
}

export function claimTemplatePath(namespace: string, name: string): string {
  return `${claimTemplatesPath(namespace)}/${encodeURIComponent(name)}`;
}
