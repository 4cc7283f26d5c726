import tap, { test } from 'tap';
import { agentConfig } from '../../src/cli/run-config.js';
import { flagValues } from '../../src/cli/run-flags.js';
import { VERSION } from '../../src/host/version.js';
import { Commands, type Ended } from './commands.js';

const commands = new Commands();

tap.teardown(() => commands.close());

/** The arguments of the start script of the original's image. */
const ORIGINAL = [
  '--extra-config=/etc/gpu-manager/extra-config.json',
  '--v=2',
  '--hostname-override=node-1',
  '--share-mode=true',
  '--volume-config=/etc/gpu-manager/volume.conf',
  '--log-dir=/var/log/gpu-manager',
  '--query-addr=0.0.0.0',
];

const called = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  commands.gpuManager(args, { env });

test("version prints the original's format", async (t) => {
  for (const flag of ['--version', '--version=true', '--version=raw'])
    t.match(await called([flag], { EXTRA_FLAGS: '--no-such-flag' }), { code: 0, out: `${VERSION}\n` }, flag);
});

test("EXTRA_FLAGS of the original's manifest are the last flags of the agent and of no other command", async (t) => {
  for (const args of [ORIGINAL, ['run', ...ORIGINAL]])
    t.match(
      await called([...args, '--query-port=5678'], { EXTRA_FLAGS: ' --alsologtostderr=true  --query-port=99999 ' }),
      {
        code: 2,
        err: /--query-port: must be at most 65535/,
      },
    );
  t.match(await called(['topology', '/nowhere'], { EXTRA_FLAGS: '--query-port=99999' }), {
    err: /^(?!.*query-port)/,
  });
  t.match(await called(['completion', 'bash'], { EXTRA_FLAGS: '--query-port=99999' }), { code: 0 });
});

test("LOG_LEVEL of the original's manifest sets the verbosity unless a flag does, and unknown words are ignored", (t) => {
  const level = (given: Record<string, string>, environment: Record<string, string>) =>
    agentConfig(flagValues(given, environment), {}).logLevel;
  t.equal(level({}, { LOG_LEVEL: '5' }), 'trace');
  t.equal(level({ v: '0' }, { LOG_LEVEL: '5' }), 'info');
  t.equal(level({}, { LOG_LEVEL: '5', GPU_MANAGER_V: '2' }), 'debug');
  t.equal(level({}, { LOG_LEVEL: 'warning' }), 'info');
  t.end();
});

test('the agent leaves out labels that are no pairs and logs them', (t) => {
  const { nodeLabels, malformedNodeLabels } = agentConfig(flagValues({ 'node-labels': 'a=b,c,d=e=f,=g,h=' }, {}), {});
  t.same(
    [...nodeLabels],
    [
      ['a', 'b'],
      ['h', ''],
    ],
  );
  t.same(malformedNodeLabels, ['c', 'd=e=f', '=g']);
  t.end();
});
