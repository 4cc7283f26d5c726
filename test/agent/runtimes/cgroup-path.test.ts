import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { test } from 'tap';
import { kubeletRoots, parseProcCgroup } from '../../../src/agent/runtimes/cgroup-path.js';

const ID = '2b8e7d3d6f0c4b1a9e5f8c7d6b5a49382716f5e4d3c2b1a09f8e7d6c5b4a3928';
const OTHER = 'f'.repeat(64);
const UID = '3ac45a1e-0d2f-4c6b-9a7e-1f2d3c4b5a60';
const SLICE_UID = UID.replaceAll('-', '_');

const v1 = (path: string, controllers = 'memory') =>
  `12:pids:/\n8:${controllers}:${path}\n1:name=systemd:${path}\n0::/\n`;
const v2 = (path: string) => `0::${path}\n`;

/** The cgroup paths of each naming scheme: description, path, pod and driver. */
const PATHS: readonly [string, string, string | null, 'cgroupfs' | 'systemd'][] = [
  ['cgroupfs, guaranteed', `/kubepods/pod${UID}/${ID}`, UID, 'cgroupfs'],
  ['cgroupfs, burstable', `/kubepods/burstable/pod${UID}/${ID}`, UID, 'cgroupfs'],
  ['cgroupfs, best effort', `/kubepods/besteffort/pod${UID}/${ID}`, UID, 'cgroupfs'],
  ['cgroupfs under a root of its own', `/machines/node/kubepods/burstable/pod${UID}/${ID}`, UID, 'cgroupfs'],
  [
    'cgroupfs, a static pod, whose UID is a digest',
    `/kubepods/pod0123456789abcdef0123456789abcdef/${ID}`,
    '0123456789abcdef0123456789abcdef',
    'cgroupfs',
  ],
  ['cri-o with cgroupfs', `/kubepods/burstable/pod${UID}/crio-${ID}`, UID, 'cgroupfs'],
  [
    'systemd with docker',
    `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${SLICE_UID}.slice/docker-${ID}.scope`,
    UID,
    'systemd',
  ],
  [
    'systemd with containerd, guaranteed',
    `/kubepods.slice/kubepods-pod${SLICE_UID}.slice/cri-containerd-${ID}.scope`,
    UID,
    'systemd',
  ],
  [
    'systemd with cri-o',
    `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${SLICE_UID}.slice/crio-${ID}.scope`,
    UID,
    'systemd',
  ],
  [
    'systemd with cri-o and crun, one level deeper',
    `/kubepods.slice/kubepods-pod${SLICE_UID}.slice/crio-${ID}.scope/container`,
    UID,
    'systemd',
  ],
  [
    'systemd under a root of its own',
    `/node.slice/node-kubepods.slice/node-kubepods-pod${SLICE_UID}.slice/cri-containerd-${ID}.scope`,
    UID,
    'systemd',
  ],
  ['a cluster in a container', `/docker/${OTHER}/kubelet/kubepods/burstable/pod${UID}/${ID}`, UID, 'cgroupfs'],
  [
    'control groups that a container created with the name of another pod',
    `/kubepods/burstable/pod${UID}/${ID}/kubepods/pod11111111-0000-0000-0000-000000000000/${OTHER}`,
    UID,
    'cgroupfs',
  ],
  [
    'the same with systemd',
    `/kubepods.slice/kubepods-pod${SLICE_UID}.slice/cri-containerd-${ID}.scope/kubepods.slice/kubepods-pod11111111_0000_0000_0000_000000000000.slice/cri-containerd-${OTHER}.scope`,
    UID,
    'systemd',
  ],
  ['a cgroup of the container itself', `/kubepods/burstable/pod${UID}/${ID}/child`, UID, 'cgroupfs'],
  ['a container in the container', `/kubepods/burstable/pod${UID}/${ID}/docker/${OTHER}`, UID, 'cgroupfs'],
  ['systemd in the container', `/kubepods/burstable/pod${UID}/${ID}/system.slice/ssh.service`, UID, 'cgroupfs'],
  [
    'containerd with cgroupfs under a kubelet with systemd',
    `/system.slice/containerd.service/kubepods-besteffort-pod${SLICE_UID}.slice:cri-containerd:${ID}`,
    UID,
    'systemd',
  ],
  ['the same outside of a service', `/kubepods-burstable-pod${SLICE_UID}.slice:cri-containerd:${ID}`, UID, 'systemd'],
  [
    'the same with a cgroup below',
    `/kubepods-burstable-pod${SLICE_UID}.slice:cri-containerd:${ID}/child`,
    UID,
    'systemd',
  ],
  ['seen from another cgroup namespace', `/../../kubepods/burstable/pod${UID}/${ID}`, UID, 'cgroupfs'],
  ['docker alone', `/docker/${ID}`, null, 'cgroupfs'],
  ['docker in docker', `/docker/${ID}/docker/${OTHER}`, null, 'cgroupfs'],
  ['docker alone with systemd', `/system.slice/docker-${ID}.scope`, null, 'systemd'],
  ['containerd without a pod', `/default/${ID}`, null, 'cgroupfs'],
];

for (const [description, path, podUid, driver] of PATHS) {
  test(`the container is found: ${description}`, (t) => {
    for (const text of [v1(path), v1(path, 'memory,hugetlb'), v2(path)])
      t.match(parseProcCgroup(text), { containerId: ID, podUid, driver });
    t.end();
  });
}

test('in a cluster inside a pod, the pod below the root of the kubelet that runs the agent counts', (t) => {
  const outer = `/kubepods/pod11111111-0000-0000-0000-000000000000/${OTHER}`;
  for (const [between, forged] of [
    ['', `/kubepods/pod22222222-0000-0000-0000-000000000000/${OTHER}`],
    ['/kubelet', ''],
  ]) {
    const own = v2(`${outer}${between}/kubepods/besteffort/pod${UID.replace('3', '4')}/${OTHER}`);
    const roots = kubeletRoots(own);
    t.same(roots, [`${outer}${between}`]);
    const path = `${outer}${between}/kubepods/burstable/pod${UID}/${ID}`;
    t.match(parseProcCgroup(v2(`${path}${forged}`), roots), { containerId: ID, podUid: UID, path });
  }
  t.same(kubeletRoots(v2(`/kubepods/besteffort/pod${UID}/${ID}`)), [], 'a kubelet at the top has no root path');
  t.same(kubeletRoots(v2(`/node.slice/node-kubepods.slice/node-kubepods-pod${SLICE_UID}.slice/crio-${ID}.scope`)), [
    '/node.slice',
  ]);
  t.same(kubeletRoots(v2('/')), []);
  t.end();
});

test('processes outside of containers belong to no container', (t) => {
  const paths = [
    '/',
    '/user.slice/user-0.slice/session-1.scope',
    '/system.slice/sshd.service',
    `/kubepods/burstable/pod${UID}`,
    `/kubepods.slice/kubepods-pod${SLICE_UID}.slice`,
    `/kubepods.slice/kubepods-pod${SLICE_UID}.slice/crio-conmon-${ID}.scope`,
    `/crio-conmon-${ID}`,
    `/docker/${ID.slice(1)}`,
  ];
  for (const path of paths) for (const text of [v1(path), v2(path)]) t.equal(parseProcCgroup(text), null, path);
  t.end();
});

test('the cgroup of the whole container is found, with its hierarchy', (t) => {
  const path = `/kubepods/burstable/pod${UID}/${ID}`;
  t.match(parseProcCgroup(v2(`${path}/child/child`)), { path, controllers: null });
  t.match(parseProcCgroup(v1(`${path}/child`, 'memory,hugetlb')), { path, controllers: ['memory', 'hugetlb'] });
  t.end();
});

test('with both versions mounted, the hierarchy that lists the container counts', (t) => {
  t.match(parseProcCgroup(`5:cpu,cpuacct:/docker/${ID}\n4:memory:/elsewhere\n0::/system.slice\n`), {
    containerId: ID,
    controllers: ['cpu', 'cpuacct'],
  });
  t.match(parseProcCgroup(`4:memory:/\n0::/docker/${ID}\n`), { containerId: ID, controllers: null });
  t.end();
});

test('a directory named like a pod outside of kubepods is not a pod', (t) => {
  t.match(parseProcCgroup(v2(`/podman/pod${UID}/${ID}`)), { podUid: null, containerId: ID });
  t.end();
});

test('the cgroup of this process is read', (t) => {
  const place = parseProcCgroup(readFileSync('/proc/self/cgroup', 'utf8'));
  t.ok(place === null || /^[0-9a-f]{64}$/.test(place.containerId));
  t.end();
});

test('any text is read without harm, and an answer is always part of the text', (t) => {
  const part = fc.constantFrom(
    'kubepods',
    'burstable',
    `pod${UID}`,
    ID,
    `docker-${ID}.scope`,
    `kubepods-pod${SLICE_UID}.slice`,
    ':cri-containerd:',
    '..',
    '',
    ':',
    'child',
    '\0',
    'pod',
    '.slice',
    '.scope',
  );
  const line = fc
    .tuple(
      fc.constantFrom('0::', '4:memory:', '3:cpu,cpuacct:', 'x', ''),
      fc.array(part, { maxLength: 12 }),
      fc.constantFrom('/', '', ':'),
    )
    .map(([head, parts, glue]) => `${head}/${parts.join(glue)}`);
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), fc.string(), (lines, noise) => {
      const text = [...lines, noise].join('\n');
      const place = parseProcCgroup(text);
      return place === null || (text.includes(place.containerId) && text.includes(place.path));
    }),
    { numRuns: 5000 },
  );
  t.pass('5000 texts');
  t.end();
});
