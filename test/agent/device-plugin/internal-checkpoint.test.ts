import { test } from 'tap';
import { devicePluginProto } from '../../../src/rpc/proto.js';
import { parseKubeletCheckpoint } from '../../../src/agent/device-plugin/internal-checkpoint.js';

const entry = (ids: unknown) => ({
  PodUID: 'uid',
  ContainerName: 'main',
  ResourceName: 'tencent.com/vcuda-core',
  DeviceIDs: ids,
  AllocResp: 'AA==',
});
const expected = [
  {
    podUid: 'uid',
    container: 'main',
    resource: 'tencent.com/vcuda-core',
    deviceIds: ['a', 'b'],
    gpuNames: [] as string[],
  },
];

for (const [format, document] of [
  [
    'by NUMA node, since 1.20',
    { Data: { PodDeviceEntries: [entry({ '-1': ['a'], '0': ['b'] })], RegisteredDevices: {} }, Checksum: 1 },
  ],
  ['as a list, before 1.20', { Data: { PodDeviceEntries: [entry(['a', 'b'])], RegisteredDevices: {} }, Checksum: 1 }],
  ['without Data, in the first versions', { PodDeviceEntries: [entry(['a', 'b'])], RegisteredDevices: {} }],
] as const) {
  test(`device ids ${format}, are read`, (t) => {
    const parsed = parseKubeletCheckpoint(JSON.stringify(document));
    t.ok(parsed.ok);
    if (parsed.ok) t.same(new Set(parsed.entries[0]?.deviceIds), new Set(['a', 'b']));
    if (parsed.ok) t.same({ ...parsed.entries[0], deviceIds: ['a', 'b'] }, expected[0]);
    t.end();
  });
}

test('the GPUs of a container are read from the answer of the plugin, by UUID or by device file', (t) => {
  const { ContainerAllocateResponse } = devicePluginProto().v1beta1;
  const annotations = { 'tencent.com/vcuda-device': '/dev/nvidia3' };
  for (const [envs, expectedNames] of [
    [{ NVIDIA_VISIBLE_DEVICES: 'GPU-a,GPU-b' }, ['GPU-a', 'GPU-b']],
    [{}, ['/dev/nvidia3']],
  ] as const) {
    const response = ContainerAllocateResponse.serialize({ envs, annotations }).toString('base64');
    const parsed = parseKubeletCheckpoint(
      JSON.stringify({ Data: { PodDeviceEntries: [{ ...entry(['a']), AllocResp: response }] } }),
    );
    t.same(parsed.ok && parsed.entries[0]?.gpuNames, expectedNames);
  }
  t.end();
});

test('a kubelet that never allocated a device has no entries', (t) => {
  t.same(parseKubeletCheckpoint('{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":0}'), {
    ok: true,
    entries: [],
    ofNvidia: [],
  });
  t.end();
});

test("resources of NVIDIA's device plugin that have devices are named", (t) => {
  const RegisteredDevices = {
    'nvidia.com/gpu': ['GPU-a'],
    'nvidia.com/gpu.shared': null,
    'nvidia.com/mig-1g.10gb': ['MIG-a'],
    'tencent.com/vcuda-core': ['a-c0'],
  };
  t.match(parseKubeletCheckpoint(JSON.stringify({ Data: { PodDeviceEntries: null, RegisteredDevices } })), {
    ofNvidia: ['nvidia.com/gpu'],
  });
  t.end();
});

for (const text of [
  '',
  '[]',
  '{"Data":{"PodDeviceEntries":{}}}',
  '{"Data":{"PodDeviceEntries":[{"PodUID":1}]}}',
  '{"PodDeviceEntries":[null]}',
  '{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":[1]}]}}',
]) {
  test(`${JSON.stringify(text)} is refused with a reason`, (t) => {
    const parsed = parseKubeletCheckpoint(text);
    t.notOk(parsed.ok);
    t.end();
  });
}
