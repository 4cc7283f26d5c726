import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { MessageTypeDefinition } from '@grpc/proto-loader';
import { test } from 'tap';
import {
  draHealthV1alpha1Proto,
  draHealthV1Proto,
  draV1Proto,
  pluginRegistrationProto,
} from '../../../src/rpc/proto.js';

/** Bytes that the Go types of the kubelet encoded; see golden/main.go. */
const VECTORS = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../../test/agent/claims/vectors.json', import.meta.url)), 'utf8'),
) as readonly { readonly protocol: string; readonly message: string; readonly case: string; readonly hex: string }[];

const DEVICE = {
  request_names: ['gpu'],
  pool_name: 'node/vcuda',
  device_name: 'gpu-1',
  cdi_device_ids: ['tencent.com/vcuda=slice-1-0'],
};
const CLAIM = { namespace: 'team', uid: 'u-1', name: 'gpu' };

/** The same messages as this project writes them. */
const OURS: Readonly<Record<string, object>> = {
  'v1 NodePrepareResourcesRequest two claims': { claims: [CLAIM, { uid: 'u-2' }] },
  'v1 NodePrepareResourcesRequest none': { claims: [] },
  'v1 NodePrepareResourcesResponse share': {
    claims: { 'u-1': { devices: [{ ...DEVICE, share_id: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6' }] } },
  },
  'v1 NodePrepareResourcesResponse no share': { claims: { 'u-1': { devices: [DEVICE] } } },
  'v1 NodePrepareResourcesResponse empty share': {
    claims: { 'u-1': { devices: [{ ...DEVICE, share_id: '' }] } },
  },
  'v1 NodePrepareResourcesResponse refused': { claims: { 'u-1': { error: 'no room' } } },
  'v1 NodeUnprepareResourcesRequest one claim': { claims: [CLAIM] },
  'v1 NodeUnprepareResourcesResponse done': { claims: { 'u-1': {} } },
  'registration PluginInfo driver': {
    type: 'DRAPlugin',
    name: 'gpu.tencent.com',
    endpoint: '/p/dra.sock',
    supported_versions: ['v1.DRAPlugin'],
  },
  'registration RegistrationStatus refused': { error: 'no' },
  'registration RegistrationStatus registered': { plugin_registered: true },
  'health NodeWatchResourcesResponse ill': {
    devices: [
      {
        device: { pool_name: 'node/vcuda', device_name: 'gpu-1' },
        health: 'UNHEALTHY',
        last_updated_time: '1700000000',
        message: 'XID 79',
      },
    ],
  },
};

type Codec = Pick<MessageTypeDefinition<object, object>, 'serialize' | 'deserialize'>;

const codecs = (protocol: string, message: string): Codec[] => {
  const packages: Readonly<Record<string, readonly object[]>> = {
    v1: [draV1Proto().k8s.io.kubelet.pkg.apis.dra.v1],
    registration: [pluginRegistrationProto().pluginregistration],
    // Both versions of the service have the same messages.
    health: [draHealthV1alpha1Proto().v1alpha1, draHealthV1Proto().v1],
  };
  return (packages[protocol] ?? []).map((types) => (types as Readonly<Record<string, Codec>>)[message] as Codec);
};

test('every message of the kubelet has the bytes that its own Go types encode', (t) => {
  t.equal(VECTORS.length, Object.keys(OURS).length);
  for (const vector of VECTORS) {
    const name = `${vector.protocol} ${vector.message} ${vector.case}`;
    const ours = OURS[name];
    t.ok(ours, name);
    for (const codec of codecs(vector.protocol, vector.message)) {
      t.equal(codec.serialize(ours as object).toString('hex'), vector.hex, `${name} is encoded the same`);
      const read = codec.deserialize(Buffer.from(vector.hex, 'hex'));
      t.match(read, ours, `${name} is decoded without loss`);
    }
  }
  t.end();
});

test('fields that this agent does not know are skipped', (t) => {
  const [codec] = codecs('v1', 'NodePrepareResourcesRequest');
  const known = codec?.serialize({ claims: [CLAIM] }) ?? Buffer.alloc(0);
  // Field 15, a text.
  const more = Buffer.concat([known, Buffer.from([0x7a, 0x03, 0x6e, 0x65, 0x77])]);
  t.match(codec?.deserialize(more), { claims: [CLAIM] });
  t.end();
});
