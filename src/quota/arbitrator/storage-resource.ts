/**
 * Whether a resource is claimed by volume claims: `storage`, `persistentvolumeclaims`, and the same of a storage class.
 */
export function isStorage(resource: string): boolean {
  return (
    resource === 'storage' ||
    resource === 'persistentvolumeclaims' ||
    /\.storageclass\.storage\.k8s\.io\/(?:requests\.storage|persistentvolumeclaims)$/.test(resource)
  );
}
