import { credentials } from '@grpc/grpc-js';
import { test } from 'tap';
import { parseSimNode } from '../../../src/agent/gpus/sim/node.js';
import { SimDriver } from '../../../src/agent/gpus/sim/sim-driver.js';
import { draHealthV1alpha1Proto, draHealthV1Proto } from '../../../src/rpc/proto.js';
import { eventually } from '../../harness/eventually.js';
import { cards } from '../gpus.js';
import { DEVICE, startedDraNode, type DraNode } from './dra-node.js';

function twoGpus(): SimDriver {
  const parsed = parseSimNode(cards(2));
  if (!parsed.ok) throw new Error(parsed.reason);
  return new SimDriver(parsed.node);
}

interface Published {
  readonly name: string;
  readonly taints?: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
}

function published(node: DraNode, index: number): Published | undefined {
  const [slice] = node.cluster.server.all('resourceslices');
  return (slice?.spec as { readonly devices: readonly Published[] }).devices.find(({ name }) => name === DEVICE(index));
}

test('a lost GPU gets a taint, its claims stay, and a claim that was allocated earlier is still prepared', async (t) => {
  const driver = twoGpus();
  const node = await startedDraNode(t, 2, { driver });
  node.allocate('before', { cores: 30 });
  node.allocate('late', { cores: 30 });
  t.type(await node.given('before'), Array);
  driver.lose((await driver.inventory()).gpus[0]?.uuid ?? '');
  await eventually(() => (published(node, 0)?.taints ?? []).length > 0, 'the taint');
  t.match(published(node, 0)?.taints, [{ key: 'gpu.tencent.com/health', value: 'lost', effect: 'NoSchedule' }]);
  t.same(published(node, 1)?.taints ?? [], []);
  t.same(node.booked(), ['30/16']);
  t.type(await node.given('late'), Array, 'the GPU became unhealthy after the decision of the scheduler');
});

test('kubelets of both versions follow the health of every device', async (t) => {
  const driver = twoGpus();
  const node = await startedDraNode(t, 2, { driver });
  const { DRAResourceHealth: Present } = draHealthV1Proto().v1;
  const { DRAResourceHealth: Earlier } = draHealthV1alpha1Proto().v1alpha1;
  const heard: string[][] = [[], []];
  for (const [at, Client] of [Present, Earlier].entries()) {
    const client = new Client(`unix:${node.sockets.driver}`, credentials.createInsecure());
    const stream = client.NodeWatchResources({});
    stream.on(
      'data',
      ({
        devices,
      }: {
        readonly devices: readonly {
          readonly health: string;
          readonly device: { readonly device_name: string } | null;
        }[];
      }) => {
        heard[at] = devices.map(({ device, health }) => `${device?.device_name} ${health}`);
      },
    );
    stream.on('error', () => undefined);
    t.teardown(() => {
      stream.cancel();
      client.close();
    });
  }
  const all = (...health: readonly string[]): string => health.map((text, index) => `${DEVICE(index)} ${text}`).join();
  await eventually(
    () => heard.every((lines) => lines.join() === all('HEALTHY', 'HEALTHY')),
    'both devices to be healthy',
  );
  driver.lose((await driver.inventory()).gpus[1]?.uuid ?? '');
  await eventually(
    () => heard.every((lines) => lines.join() === all('HEALTHY', 'UNHEALTHY')),
    'the second device to be unhealthy',
  );
  t.pass('without asking again');
});
