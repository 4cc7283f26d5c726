import { execFileSync, spawnSync } from 'node:child_process';
import { lstatSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import { parse } from 'yaml';
import { documents, inOrder, read, ROOT, type ShippedObject } from './rendering.js';

/** kustomize, or a kubectl that contains it: the installed one, or that of a Kubernetes which was built for tests. */
const PROGRAMS: readonly (readonly string[])[] = [
  ['kustomize', 'build'],
  ['kubectl', 'kustomize'],
  [join(homedir(), '.cache/kube-e2e/1.37/bin/kubectl'), 'kustomize'],
];
const PROGRAM = PROGRAMS.find(([name = '', action = '']) => spawnSync(name, [action, '--help']).status === 0);
const skip = PROGRAM === undefined ? 'kustomize is not installed: run scripts/install-tools' : false;

const AGENT = ['etc/agent/daemonset.yaml'];
const EXTENDER = ['etc/extender/deployment.yaml'];
const CONSOLE = ['etc/console/deployment.yaml'];
const QUOTA = ['etc/quota/crds.yaml', 'etc/quota/deployment.yaml', 'etc/quota/disruption-budget.yaml'];

function build(directory: string): ShippedObject[] {
  const [name = '', ...args] = PROGRAM ?? [];
  return documents(execFileSync(name, [...args, join(ROOT, directory)], { encoding: 'utf8' }));
}
const objectsOf = (paths: readonly string[]): ShippedObject[] => paths.flatMap((path) => documents(read(path)));
const named = (objects: readonly ShippedObject[]): string[] =>
  objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();

test('kubectl apply -k . and the overlays install the shipped objects', { skip }, (t) => {
  t.same(inOrder(build('.')), inOrder(objectsOf(AGENT)));
  t.same(inOrder(build('etc/kustomize/agent')), inOrder(objectsOf(AGENT)));
  t.same(inOrder(build('etc/kustomize/agent-extender')), inOrder(objectsOf([...AGENT, ...EXTENDER])));
  const all = build('etc/kustomize/all');
  const policies = ['agent-node', 'classes', 'console-proxy', 'extender', 'quota'].map(
    (name) => `etc/admission/${name}.yaml`,
  );
  const proxy = 'etc/plugin-proxy/daemonset.yaml';
  t.same(named(all), named(objectsOf([...AGENT, ...policies, proxy, ...EXTENDER, ...CONSOLE, ...QUOTA])));
  t.match(JSON.stringify(all), /GPU_MANAGER_PLUGIN_PROXY_PATH/, 'the agents register with the proxy');
  t.end();
});

interface AgentPod {
  readonly containers: readonly {
    readonly env: readonly { readonly name: string; readonly value?: string }[];
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  }[];
  readonly volumes: readonly { readonly name: string; readonly hostPath: { readonly path: string } }[];
}

/** The pods of the agents that an overlay makes. */
function agentPod(overlay: string): AgentPod {
  const agent = build(overlay).find(({ kind }) => kind === 'DaemonSet') as unknown as {
    readonly spec: { readonly template: { readonly spec: AgentPod } };
  };
  return agent.spec.template.spec;
}

test(
  "the overlay for k0s mounts and names its kubelet's directory, and leaves that of device plugins",
  { skip },
  (t) => {
    const directories = ({ containers: [agent], volumes }: AgentPod): unknown[] =>
      volumes.map(({ name, hostPath }) => [
        hostPath.path,
        agent?.volumeMounts.filter((mount) => mount.name === name).map(({ mountPath }) => mountPath),
      ]);
    const socket = '/var/lib/k0s/kubelet/pod-resources/kubelet.sock';
    const [plain, moved] = [agentPod('etc/kustomize/agent'), agentPod('etc/kustomize/agent-k0s')];
    t.match(
      moved.containers[0]?.env.find(({ name }) => name === 'GPU_MANAGER_POD_RESOURCES_SOCKET'),
      { value: socket },
    );
    t.same(
      new Set(directories(moved).map((one) => JSON.stringify(one))),
      new Set(
        directories(plain).map((one) =>
          JSON.stringify(one).replaceAll('/var/lib/kubelet/pod-resources', '/var/lib/k0s/kubelet/pod-resources'),
        ),
      ),
    );
    t.match(JSON.stringify(directories(moved)), '/var/lib/kubelet/device-plugins');
    t.end();
  },
);

interface ImageComponent {
  readonly images: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
}

test('the overlays name registry and tag in one place', { skip }, (t) => {
  const { images } = parse(read('etc/kustomize/image/kustomization.yaml')) as ImageComponent;
  const others = readdirSync(join(ROOT, 'etc'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('kustomization.yaml') && path !== 'kustomize/image/kustomization.yaml')
    .filter((path) => /^(images|.*newTag)/m.test(read(join('etc', path))));
  t.same(others, []);
  t.equal(images.length, 1);
  for (const overlay of readdirSync(join(ROOT, 'etc/kustomize'))) {
    if (overlay === 'image') continue;
    const text = JSON.stringify(build(join('etc/kustomize', overlay)));
    const used = [...text.matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image);
    t.ok(used.length > 0, overlay);
    for (const image of used) t.equal(image, `${images[0]?.newName}:${images[0]?.newTag}`, overlay);
  }
  t.end();
});

test('every manifest, the overlays and the chart name one image, with the version of the package, and kube-scheduler', (t) => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const files = readdirSync(join(ROOT, 'etc'), { recursive: true, encoding: 'utf8' })
    .map((path) => join('etc', path))
    .filter((path) => path.endsWith('.yaml') && lstatSync(join(ROOT, path)).isFile());
  const used = files.flatMap((path) =>
    [...read(path).matchAll(/\bimage: +(\S+)/g)].map(([, image]) => `${path}: ${image}`),
  );
  t.ok(used.length >= 7, `${used.length} images`);
  t.same(
    used.filter((line) => !line.endsWith(`: gpu-manager:${version}`)),
    ['etc/scheduler/deployment.yaml: kube-scheduler:v1.37.0'],
  );
  t.match(parse(read('etc/kustomize/image/kustomization.yaml')), {
    images: [{ name: 'gpu-manager', newName: 'gpu-manager', newTag: version }],
  });
  t.match(parse(read('charts/gpu-manager/values.yaml')), {
    image: { registry: '', repository: 'gpu-manager', tag: '', digest: '' },
  });
  t.end();
});

test('daemonset.yaml has the text of the manifest, so that kubectl can apply it by its address', (t) => {
  // A server of files shows a symbolic link as the path that it points to.
  t.ok(lstatSync(join(ROOT, 'daemonset.yaml')).isFile());
  t.equal(read('daemonset.yaml'), read('etc/agent/daemonset.yaml'));
  t.end();
});
