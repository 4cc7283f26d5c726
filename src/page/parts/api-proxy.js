/**
 * URL of the API server behind whose proxy this page lies, as with `kubectl proxy`
 * (`/api/v1/namespaces/kube-system/pods/https:POD:5678/proxy/`); null for a page elsewhere.
 */
export const API_PROXY = apiProxy(location);

function apiProxy({ origin, pathname }) {
  const found = /^(.*)\/api\/v1\/namespaces\/[^/]+\/(?:pods|services)\/[^/]+\/proxy\//u.exec(pathname);
  return found === null ? null : `${origin}${found[1]}`;
}
