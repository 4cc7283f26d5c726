/** A node without a machine: it is ready, and pods that are bound to it do not start. */
export const bareNode = (
  name: string,
  amounts: Readonly<Record<string, string>>,
  { labels = {}, annotations = {} }: { readonly labels?: object; readonly annotations?: object } = {},
): object => {
  const all = { cpu: '32', memory: '256Gi', pods: '110', ...amounts };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, annotations, labels: { 'kubernetes.io/hostname': name, ...labels } },
    status: {
      capacity: all,
      allocatable: all,
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
    },
  };
};
