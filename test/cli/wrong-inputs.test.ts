import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { scratchDirectory } from '../scratch.js';
import { Commands, type Ended } from './commands.js';
import { MAIN } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';

const commands = new Commands();

tap.teardown(() => commands.close());

/** A command line, the exit code, and the text on standard error; `input` is the content of standard input. */
type Row = readonly [args: string, code: 1 | 2, message: RegExp, input?: string];

/** Mistakes of users at a terminal; the files are those of the test. */
const ROWS: readonly Row[] = [
  ['usag', 2, /unknown command 'usag' \(Did you mean usage\?\)/],
  ['nonsense', 2, /unknown command 'nonsense'/],
  ['--nonsense', 2, /unknown option '--nonsense'/],
  ['run --shar-mode', 2, /unknown option '--shar-mode' \(Did you mean --share-mode\?\)/],
  ['run extra', 2, /too many arguments/],
  ['run --driver=amd', 2, /--driver: expected nvidia, sim or dummy \(got "amd"\)/],
  ['run --query-port=99999', 2, /--query-port: must be at most 65535/],
  ['run --query-port=web', 2, /--query-port: expected a whole number \(got "web"\)/],
  ['run --sample-period=0', 2, /--sample-period: must be at least 1/],
  ['run --wait-timeout=60', 2, /--wait-timeout: expected a duration such as 500ms, 5s or 1m/],
  ['run --audit-policy=kill', 2, /--audit-policy: .*report.*evict/],
  ['run --allocation=both', 2, /--allocation: .*plugin.*dra.*mixed/],
  ['graph --extendd', 2, /unknown option '--extendd' \(Did you mean --extended\?\)/],
  ['graph -o xml', 2, /'xml' is invalid\. Expected table, wide, json, yaml, tkestack/],
  ['graph --display-socket', 2, /argument missing/],
  ['graph --display-socket ./none.sock', 1, /no agent answers at \.\/none\.sock: is it running\? \(--display-socket\)/],
  ['usage --display-socket ./none.sock', 1, /no agent answers at \.\/none\.sock/],
  ['usage --display-socket ./tree.yaml', 1, /no agent answers at \.\/tree\.yaml/],
  ['usage extra', 2, /too many arguments/],
  ['top --once --display-socket ./none.sock', 1, /no agent answers at/],
  ['top --delay 0', 2, /Expected seconds from 0\.2 to 3600/],
  ['top --delay soon', 2, /Expected seconds from 0\.2 to 3600/],
  ['events --display-socket ./none.sock', 1, /no agent answers at/],
  ['events --folow', 2, /\(Did you mean --follow\?\)/],
  ['limits se', 2, /limits: unknown command "se"; expected list, set, release/],
  ['limits --display-socket ./none.sock', 1, /no agent answers at/],
  ['limits set', 2, /missing required argument 'container'/],
  ['limits set web --memory lots', 2, /Expected blocks of 256 MiB such as 16, or an amount with a unit/],
  ['limits set web --share 101', 2, /Expected a number of cores from 1 to 100/],
  ['limits set web --share 0', 2, /Expected a number of cores from 1 to 100/],
  ['limits set web --display-socket ./none.sock', 2, /give at least one of --memory, --cores and --soft/],
  ['limits release', 2, /missing required argument 'container'/],
  ['health clea', 2, /health: unknown command "clea"; expected list, clear/],
  ['health clear', 2, /missing required argument 'gpu'/],
  ['health list --display-socket ./none.sock', 1, /no agent answers at/],
  ['demo --query-port 99999', 2, /Expected a port from 0 to 65535/],
  ['demo --query-port web', 2, /Expected a port from 0 to 65535/],
  [
    'demo --query-addr 192.0.2.1 --query-port 0',
    2,
    /cannot listen on 192\.0\.2\.1:0: this machine has no such address/,
  ],
  ['topology ./none.txt', 2, /topology: \.\/none\.txt: there is no such file or directory/],
  ['topology ./tree.yaml', 2, /topology: \.\/tree\.yaml: /],
  ['topology ./matrix.txt -k 0', 2, /Expected a whole number from 1 to 4096/],
  ['topology ./matrix.txt -k many', 2, /Expected a whole number from 1 to 4096/],
  ['topology ./matrix.txt --free 7', 2, /there is no GPU 7, only 0, 1/],
  ['topology ./matrix.txt -k 3', 1, /3 GPUs are not available: 2 are free/],
  ['topology -', 2, /topology: -: /, ''],
  ['console --address nowhere', 2, /Expected host:port, such as 127\.0\.0\.1:3456/],
  ['console --address 127.0.0.1:99999', 2, /Expected a port from 0 to 65535/],
  ['console --kubeconfig ./none', 2, /--kubeconfig: .*none: there is no such file or directory/],
  ['console --tls-cert-file ./tree.yaml', 2, /--tls-cert-file and --tls-private-key-file must be given together/],
  [
    'console --no-token-review --address 0.0.0.0:0',
    2,
    /--no-token-review shows the whole cluster to everybody who reaches 0\.0\.0\.0; use it with a loopback address/,
  ],
  ['console --log-level loud', 2, /Allowed choices are trace, debug, info, warn, error, silent/],
  ['console --cluster-nam test', 2, /\(Did you mean --cluster-name\?\)/],
  ['console extra', 2, /too many arguments/],
  ['console --prometheus-url localhost:9090', 2, /Expected a URL such as https:\/\/prometheus\.monitoring:9090/],
  ['console --prometheus-url ftp://a', 2, /Expected a URL such as https:\/\/prometheus\.monitoring:9090/],
  ['console --prometheus-url http://user:secret@a', 2, /without user name and query/],
  ['console --prometheus-ca-file ./none', 2, /--prometheus-ca-file needs --prometheus-url/],
  [
    'console --prometheus-url http://a --prometheus-token-file ./none',
    2,
    /--prometheus-token-file cannot be read: there is no such file or directory/,
  ],
  ['extender --address nowhere', 2, /Expected host:port, such as 127\.0\.0\.1:3456/],
  ['extender --address 127.0.0.1:99999', 2, /Expected a port from 0 to 65535/],
  ['extender --policy best', 2, /Allowed choices are/],
  ['extender --claim-ttl -1', 2, /Expected seconds from 0 to 3600/],
  ['extender --kubeconfig ./none', 2, /--kubeconfig: .*none: there is no such file or directory/],
  ['extender --tls-cert-file ./tree.yaml', 2, /--tls-cert-file and --tls-private-key-file must be given together/],
  ['extender --explain ./none.yaml --state ./tree.yaml', 2, /none\.yaml/],
  ['plugin-proxy --agent-timeout never', 2, /Expected seconds from 0\.1 to 300/],
  ['quota', 2, /Usage: gpu-manager quota/],
  ['quota tre', 2, /unknown command 'tre' \(Did you mean .*tree/],
  ['quota validate', 2, /missing required argument 'tree'/],
  ['quota validate ./none.yaml', 2, /quota: \.\/none\.yaml: there is no such file or directory/],
  ['quota validate -', 2, /quota: -: no groups; expected a list of groups, or BizGroupResourceQuota objects/, ''],
  ['quota validate ./broken.yaml', 2, /quota: \.\/broken\.yaml: /],
  ['quota validate ./tree.yaml -o xml', 2, /Expected table, wide, json, yaml/],
  ['quota what-if ./tree.yaml', 2, /quota: name manifests, or - for standard input/],
  ['quota what-if ./tree.yaml ./none.yaml', 2, /quota: \.\/none\.yaml: there is no such file or directory/],
  ['quota report ./none', 2, /quota: \.\/none: the directory does not exist/],
  ['quota report ./tree.yaml', 2, /quota: \.\/tree\.yaml: this is a file; expected the directory of quota replay/],
  ['quota report .', 2, /quota: \.: no journal is there; expected the directory of quota replay --store/],
  ['quota replay ./none.jsonl', 2, /quota: \.\/none\.jsonl: there is no such file or directory/],
  ['quota verify ./none.jsonl', 2, /quota: \.\/none\.jsonl: there is no such file or directory/],
  ['quota tree --kubeconfig ./none', 2, /--kubeconfig: .*none: there is no such file or directory/],
  ['quota top nodes', 2, /Allowed choices are groups, workloads/],
  ['quota explain', 2, /quota: name objects as kind\/name, or give manifests with -f/],
  ['quota explain web --kubeconfig ./none', 2, /quota: "web" is not kind\/name/],
  ['quota explain deployment/web --replicas some', 2, /Expected a whole number from 0 to 1000000/],
  ['quota serve --port 99999', 2, /Expected a port from 0 to 65535/],
  ['quota serve --kubeconfig ./none', 2, /--kubeconfig: .*none: there is no such file or directory/],
  ['completion', 2, /missing required argument 'shell'/],
  ['completion tcsh', 2, /Allowed choices are bash, zsh, fish/],
];

/** Mistakes after `kubectl gpu`, without a kubeconfig. */
const PLUGIN_ROWS: readonly Row[] = [
  ['nods', 2, /unknown command 'nods' \(Did you mean one of nodes, pods\?\)/],
  ['--nonsense', 2, /unknown option '--nonsense'/],
  ['nodes', 2, /kubectl gpu: no kubeconfig: set KUBECONFIG, or give --kubeconfig/],
  ['nodes --kubeconfig ./none', 2, /--kubeconfig: .*none: there is no such file or directory/],
  ['nodes --kubeconfig ./broken.yaml', 2, /--kubeconfig: /],
  ['nodes --watc', 2, /\(Did you mean --watch\?\)/],
  ['nodes -o xml', 2, /Expected table, wide, json, yaml/],
  ['pods -n Team_A', 2, /Expected the name of a namespace, such as default/],
  ['pods --selector', 2, /argument missing/],
  ['top --namespace', 2, /argument missing/],
  ['describe', 2, /missing required argument 'pod'/],
  ['describe web api', 2, /too many arguments/],
  ['describe web -w', 2, /describe: -w does not apply: it describes a pod once; kubectl gpu pods POD -w follows it/],
  ['describe -l app=web', 2, /describe: -l does not apply: name one pod; kubectl gpu pods -l lists those with labels/],
  ['describe web -A', 2, /describe: -A does not apply: name one pod, and its namespace with -n/],
  ['limits', 2, /Usage: kubectl gpu limits/],
  ['limits se', 2, /unknown command 'se' \(Did you mean .*set/],
  ['limits set', 2, /missing required argument 'pod'/],
  ['limits set web', 2, /give at least one of --memory, --cores, --soft and --priority/],
  ['limits set web --memory lots', 2, /Expected blocks of 256 MiB such as 16, or an amount with a unit/],
  ['limits set web --share 101', 2, /Expected a number of cores from 1 to 100/],
  ['limits set web --priority urgent', 2, /Expected high, normal or low/],
  ['limits set --share 10 -l app=web', 2, /set: -l does not apply: name one pod; kubectl gpu limits get -l/],
  ['limits release web --watch', 2, /release: -w does not apply: it changes a pod once/],
  ['events extra', 2, /too many arguments/],
  ['doctor', 2, /missing required argument 'node'/],
  ['doctor node1 -w', 2, /doctor: -w does not apply: it checks a node once; kubectl gpu nodes NODE -w follows it/],
  ['quota', 2, /Usage: kubectl gpu quota/],
  ['quota tre', 2, /unknown command 'tre' \(Did you mean .*tree/],
  ['quota tree -l team=a', 2, /tree: -l does not apply: name a group to show its part of the tree/],
  ['quota top -l team=a', 2, /top: -l does not apply: name a group with --group/],
  ['quota explain web', 2, /quota: "web" is not kind\/name/],
  ['quota explain deployment/web -A', 2, /explain: -A does not apply: name the namespace of the objects with -n/],
  ['quota create team', 2, /missing required argument 'limits'/],
  ['quota create Team pods=3', 2, /quota: "Team" is no name of a group: expected lower case letters, digits and -/],
  ['quota create team pods', 2, /quota: "pods" is no limit: expected key=amount such as limits\.cpu=100/],
  ['quota create team pods=many', 2, /quota: pods: /],
  ['quota edit', 2, /missing required argument 'group'/],
  ['quota edit team --kubectl ./none', 2, /quota: \.\/none cannot be started: there is no such file or directory/],
];

test('a mistake on the command line is refused in one sentence with the right exit code', async (t) => {
  const directory = await scratchDirectory(t);
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  write('tree.yaml', 'groups: [{ name: root, hard: { limits.cpu: 4 } }]\n');
  write('broken.yaml', 'groups: [\n');
  write('matrix.txt', '\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n');
  mkdirSync(join(directory, 'home'));
  const env = { PATH: process.env.PATH ?? '', HOME: join(directory, 'home') };
  const check = ({ code, out, err }: Ended, [args, expected, message]: Row): void => {
    t.match({ code, err }, { code: expected, err: message }, args);
    t.notMatch(err, /^ +at .*:\d+:\d+\)?$/m, `${args} prints no stack trace`);
    if (expected === 2) t.equal(out, '', `${args} prints nothing on standard output`);
  };
  for (const [program, rows] of [
    ['gpu-manager', ROWS],
    ['kubectl-gpu', PLUGIN_ROWS],
  ] as const)
    for (const row of rows) {
      const [args, , , input = ''] = row;
      check(await commands.run({ program, args: args.split(' '), env, directory, input }), row);
    }
  // What a process adds, such as its exit code and its real standard input, is the same for every row.
  for (const row of ROWS.filter(([, , , input], at) => input !== undefined || at % 20 === 0)) {
    const [args, , , input = ''] = row;
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args.split(' ')], {
      encoding: 'utf8',
      cwd: directory,
      env,
      input,
      timeout: timeLimit(120_000),
    });
    check({ code: status, out: stdout, err: stderr }, row);
  }
});

test('the error about a port in use names the port and the remedy', async (t) => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  t.teardown(() => holder.close());
  const { port } = holder.address() as { port: number };
  for (const [flag, other] of [
    ['--query-port', '--console-port'],
    ['--console-port', '--query-port'],
  ] as const) {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [MAIN, 'demo', '--query-addr', '127.0.0.1', flag, String(port), other, '0'],
      { encoding: 'utf8', timeout: timeLimit(120_000) },
    );
    t.match([status, stdout], [2, /^$/], 'at the start');
    const place = `cannot listen on 127.0.0.1:${port}`;
    t.match(stderr, `${place}: another program listens there; stop it or choose another port (${flag})`);
  }
});

test('KUBECONFIG names the cluster of every command that needs one outside a pod', async (t) => {
  for (const args of [
    ['run', '--driver=dummy'],
    ['extender'],
    ['console'],
    ['claim-webhook'],
    ['quota', 'serve'],
    ['quota', 'tree'],
    ['quota', 'clock'],
  ]) {
    const env = { PATH: process.env.PATH ?? '', KUBECONFIG: '/nowhere/kubeconfig' };
    const ended = await commands.run({ program: 'gpu-manager', args, env, directory: '/', input: '' });
    t.match(ended, { code: 2, err: /KUBECONFIG: .*\/nowhere\/kubeconfig/ }, args.join(' '));
    t.notMatch(ended.err, /--kubeconfig/, args.join(' '));
  }
});

test('a command ends without an error when the reader closes the pipe', (t) => {
  const { stdout, stderr } = spawnSync('sh', ['-c', `"${process.execPath}" "${MAIN}" --help | true; echo ended`], {
    encoding: 'utf8',
  });
  t.equal(stdout, 'ended\n');
  t.equal(stderr, '');
  t.end();
});
