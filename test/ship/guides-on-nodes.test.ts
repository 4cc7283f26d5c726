import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { toleratesAll, type Toleration } from '../../src/manifests/taint.js';
import { documents, helmTemplate, noHelm, read, ROOT, type ShippedObject } from './rendering.js';

interface DaemonSet extends ShippedObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly nodeSelector: Readonly<Record<string, string>>;
        readonly tolerations?: readonly Partial<Toleration>[];
      };
    };
  };
}

const daemonSets = (text: string): DaemonSet[] =>
  documents(text).filter((one): one is DaemonSet => one.kind === 'DaemonSet');

/** The DaemonSets whose pods make a node offer GPUs, by the place that ships them. */
const shipped: Readonly<Record<string, () => DaemonSet[]>> = {
  'daemonset.yaml': () => daemonSets(read('daemonset.yaml')),
  'etc/plugin-proxy/daemonset.yaml': () => daemonSets(read('etc/plugin-proxy/daemonset.yaml')),
  'the chart': () =>
    noHelm === false
      ? daemonSets(helmTemplate('--set', 'nodeConfig.flags.mig={--mig-strategy=whole}'))
      : daemonSets(read('daemonset.yaml')),
};

const guides = readdirSync(join(ROOT, 'docs/guides')).map((name) => ({ name, text: read(`docs/guides/${name}`) }));

/** `key=value:effect` or `key` of taints that a guide names. */
const taints = [
  ...guides.flatMap(({ text }) =>
    [
      ...text.matchAll(
        /`((?:startup-taint\.[\w.-]+\/|karpenter\.sh\/|[\w.-]+\/)[\w.-]+)(?:=[\w.-]+)?:(?:NoSchedule|NoExecute)`/g,
      ),
    ].map(([, key = '']) => key),
  ),
  'startup-taint.cluster-autoscaler.kubernetes.io/gpu-manager',
  'nvidia.com/gpu',
  'tencent.com/vcuda-core',
  'node.cloudprovider.kubernetes.io/uninitialized',
  'team',
];

const labels = guides.flatMap(({ name, text }) =>
  [...text.matchAll(/kubectl label nodes? (?:NODE|--all|--selector \S+) ([\w./-]+)=([\w.-]+)/g)].map(
    ([, key = '', value = '']) => ({ name, key, value }),
  ),
);

test('the agent comes to a labelled node with each taint that a guide tells to set', (t) => {
  t.ok(
    guides.some(({ text }) => text.includes('startup-taint.cluster-autoscaler.kubernetes.io/')),
    'a guide names the startup taint',
  );
  for (const [place, sets] of Object.entries(shipped)) {
    t.ok(sets().length > 0, place);
    for (const { spec } of sets()) {
      const tolerations = (spec.template.spec.tolerations ?? []).map((one) => ({
        key: '',
        operator: '',
        value: '',
        effect: '',
        ...one,
      }));
      for (const key of taints)
        for (const effect of ['NoSchedule', 'NoExecute'])
          t.ok(toleratesAll(tolerations, [{ key, value: 'true', effect }]), `${place}: ${key}:${effect}`);
    }
  }
  t.end();
});

test('agents select the label that guides tell to set, and no label that no guide tells', (t) => {
  const selected = labels.filter(({ key }) => key === 'nvidia-device-enable');
  t.ok(selected.length >= 4, `${selected.length} guides`);
  for (const [place, sets] of Object.entries(shipped))
    for (const { spec } of sets()) {
      const { nodeSelector } = spec.template.spec;
      t.match(nodeSelector, { 'nvidia-device-enable': 'enable' }, place);
      const told = ([key, value]: readonly [string, string]): boolean =>
        labels.some((label) => label.key === key && label.value === value);
      t.ok(Object.entries(nodeSelector).every(told), `${place}: ${JSON.stringify(nodeSelector)}`);
    }
  t.same(
    selected.filter(({ value }) => value !== 'enable'),
    [],
  );
  t.end();
});

test('a kubelet with another directory is mounted from there, but for its device plugins', { skip: noHelm }, (t) => {
  const root = '/var/lib/k0s/kubelet';
  for (const allocation of ['plugin', 'dra']) {
    const text = helmTemplate('--set', `agent.kubeletRoot=${root},agent.allocation=${allocation}`);
    const agent = JSON.stringify(daemonSets(text));
    // The kubelet has a constant path for them: Kubernetes' deviceplugin/v1beta1/constants.go.
    t.match(agent, '"path":"/var/lib/kubelet/device-plugins"');
    t.notMatch(agent, `${root}/device-plugins`);
    const claims = allocation === 'dra' ? ['plugins_registry', 'plugins/gpu.tencent.com'] : [];
    for (const directory of ['pod-resources', ...claims])
      for (const key of ['path', 'mountPath']) t.match(agent, `"${key}":"${root}/${directory}"`);
    t.match(agent, `"--pod-resources-socket=${root}/pod-resources/kubelet.sock"`);
    t.equal(agent.includes(`"--plugin-registry-path=${root}/plugins_registry"`), claims.length > 0);
    t.equal(agent.includes(`"--dra-path=${root}/plugins/gpu.tencent.com"`), claims.length > 0);
    t.same(
      [...agent.matchAll(/\/var\/lib\/kubelet\/([^"/]+)/gu)].filter(([, name]) => name !== 'device-plugins'),
      [],
    );
  }
  t.end();
});
