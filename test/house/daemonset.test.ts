import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { agentConfig } from '../../src/cli/run-config.js';
import { flagValues, RUN_FLAGS } from '../../src/cli/run-flags.js';

interface Manifest {
  readonly kind: string;
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
  readonly spec?: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly volumeMounts: readonly { readonly mountPath: string }[];
        }[];
      };
    };
  };
}

interface PatchedContainer {
  readonly name: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

const text = readFileSync(fileURLToPath(new URL('../../../etc/agent/daemonset.yaml', import.meta.url)), 'utf8');
const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
const container = manifests.find((manifest) => manifest.kind === 'DaemonSet')?.spec?.template.spec.containers[0];

test('the flags in the DaemonSet exist, and the agent accepts their values', (t) => {
  const given: Record<string, string> = {};
  for (const arg of container?.args.slice(1) ?? []) {
    const match = /^--([a-z-]+)=(.*)$/.exec(arg);
    t.ok(
      RUN_FLAGS.some((flag) => flag.name === match?.[1]),
      `${arg} is a flag`,
    );
    given[match?.[1] ?? ''] = match?.[2] ?? '';
  }
  t.match(agentConfig(flagValues(given, {}), {}), { driver: 'nvidia', shareMode: true });
  t.end();
});

test('the DaemonSet mounts every host directory that the agent uses by default', (t) => {
  const config = agentConfig(flagValues({}, {}), {});
  const mounted = container?.volumeMounts.map((mount) => mount.mountPath) ?? [];
  for (const path of [
    config.devicePluginPath,
    config.virtualManagerPath,
    config.checkpointPath,
    config.podResourcesSocket,
    config.displaySocket,
  ]) {
    t.ok(
      mounted.some((directory) => path === directory || path.startsWith(`${directory}/`)),
      path,
    );
  }
  t.end();
});

test('the role of the agent grants what it needs, without wildcards', (t) => {
  const rules = manifests.find((manifest) => manifest.kind === 'ClusterRole')?.rules ?? [];
  t.notOk(rules.some((rule) => [...rule.resources, ...rule.verbs].includes('*')));
  t.end();
});

test('the proxy and the agents that register with it use the same folder', (t) => {
  const read = (name: string): string =>
    readFileSync(fileURLToPath(new URL(`../../../etc/plugin-proxy/${name}`, import.meta.url)), 'utf8');
  const proxy = (parse(read('daemonset.yaml')) as Manifest).spec?.template.spec.containers[0];
  const patch = parse(read('agent.yaml')) as {
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly [PatchedContainer] } } };
  };
  const [agent] = patch.spec.template.spec.containers;
  const { pluginProxyPath } = agentConfig(
    flagValues({}, Object.fromEntries(agent.env.map(({ name, value }) => [name, value]))),
    {},
  );
  t.ok(proxy?.volumeMounts.some(({ mountPath }) => mountPath === pluginProxyPath));
  t.equal(proxy?.args[0], 'plugin-proxy');
  t.equal(agent.name, 'gpu-manager');
  t.end();
});
