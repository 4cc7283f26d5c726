/** Minimal manifests of workloads. */

export type Resources = Readonly<Record<string, string | number>>;

export const LABEL = 'biz.group.resource.quota';

/** A container with the same requests and limits. */
export const container = (resources: Resources, more: object = {}) => ({
  name: 'main',
  resources: { limits: resources, requests: resources },
  ...more,
});

export const template = (resources: Resources, more: object = {}) => ({
  spec: { containers: [container(resources)], ...more },
});

/** An object of a kind in group `g`. */
export function object(
  apiVersion: string,
  kind: string,
  spec: object,
  more: { readonly labels?: object; readonly status?: object; readonly metadata?: object } = {},
) {
  return {
    apiVersion,
    kind,
    metadata: { name: 'w', namespace: 'team', uid: 'u-1', labels: { [LABEL]: 'g', ...more.labels }, ...more.metadata },
    spec,
    status: more.status,
  };
}

export const deployment = (replicas: number | undefined, pod: object, labels: object = {}) =>
  object('apps/v1', 'Deployment', { replicas, template: pod }, { labels });
