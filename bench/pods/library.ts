import { LAST, measure } from './follower.js';

await measure(async ({ url, node }, seen) => {
  const { CoreV1Api, KubeConfig, ListWatch, Watch } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: 'bench', server: url, skipTLSVerify: true }, { name: 'bench' });
  const api = config.makeApiClient(CoreV1Api);
  const fieldSelector = `spec.nodeName=${node}`;
  const watch = new ListWatch(
    '/api/v1/pods',
    new Watch(config),
    () => api.listPodForAllNamespaces({ fieldSelector }),
    false,
    undefined,
    fieldSelector,
  );
  let known = 0;
  let updated = 0;
  watch.on('add', () => seen((known += 1), updated));
  watch.on('update', (pod) => {
    if (pod.metadata?.annotations?.['tencent.com/gpu-assigned'] === LAST) updated += 1;
    seen(known, updated);
  });
  await watch.start();
});
