import { test } from 'tap';
import { deviceMetadata, deviceMetadataPath } from '../../../src/gpu/claims/device-metadata.js';

const CLAIM = { uid: 'u-1', namespace: 'team', name: 'train-gpu-x7k2p' };
const DEVICE = {
  request: 'gpus/linked',
  pool: 'n/vcuda',
  device: 'gpu-1',
  shareId: null,
  gpuUuid: 'GPU-1',
  cores: 100,
  memoryBlocks: 320,
};
const UNIT = { claim: CLAIM, request: 'gpus', devices: [DEVICE] };

test('the metadata of a claim is found by its name, and by the name in the pod if it is from a template', (t) => {
  const directory = '/var/run/kubernetes.io/dra-device-attributes';
  t.equal(deviceMetadataPath(UNIT), `${directory}/resourceclaims/train-gpu-x7k2p/gpus/gpu.tencent.com-metadata.json`);
  t.equal(
    deviceMetadataPath({ ...UNIT, nameInPod: 'gpu' }),
    `${directory}/resourceclaimtemplates/gpu/gpus/gpu.tencent.com-metadata.json`,
  );
  t.end();
});

test('the metadata has the same content in both versions, the newest first', (t) => {
  const text = deviceMetadata({ ...UNIT, nameInPod: 'gpu' }, (device) => ({ uuid: { string: `uuid of ${device}` } }));
  const [newest, older, ...rest] = text
    .split(/(?<=^\}\n)/m)
    .map((part) => JSON.parse(part) as Readonly<Record<string, unknown>>);
  const content = {
    kind: 'DeviceMetadata',
    metadata: { ...CLAIM, generation: 1 },
    podClaimName: 'gpu',
    requests: [
      {
        name: 'gpus/linked',
        devices: [
          {
            driver: 'gpu.tencent.com',
            pool: 'n/vcuda',
            name: 'gpu-1',
            attributes: { uuid: { string: 'uuid of gpu-1' } },
          },
        ],
      },
    ],
  };
  t.strictSame(newest, { apiVersion: 'metadata.resource.k8s.io/v1beta1', ...content });
  t.strictSame(older, { apiVersion: 'metadata.resource.k8s.io/v1alpha1', ...content });
  t.same(rest, []);
  t.end();
});
