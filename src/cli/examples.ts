import type { Command } from 'commander';

/** A command line that works as it stands, after the program's name, and what it does. */
type Example = readonly [line: string, result: string];

/** Examples in the help of `gpu-manager COMMAND`, by the words of the command. */
export const GPU_MANAGER_EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  run: [
    ['run --volume-config=/etc/gpu-manager/volume.conf --share-mode', 'a node with NVIDIA GPUs'],
    ['run --driver=sim --sim-node=topology.txt', 'simulated GPUs, connected as in the output of nvidia-smi topo -m'],
    ['run --mig-strategy=shared', 'each MIG instance counts as a GPU'],
  ],
  graph: [
    ['graph', 'GPUs, their connections and what is free'],
    ['graph -o tkestack', 'the text of tkestack gpu-manager'],
  ],
  usage: [
    ['usage', 'one line for each container'],
    ['usage -o wide', 'with claims and UUIDs'],
  ],
  top: [
    ['top', 'a full screen; q ends it'],
    ['top --once -o json', 'one sample for a script'],
  ],
  'limits list': [['limits list -o wide', 'limits, allocation and use of each container, with UUIDs']],
  'limits set': [
    ['limits set train --memory 12', '12 blocks of 256 MiB'],
    ['limits set team-a/train/main --cores 20 --soft 60', '20 cores, up to 60 while the GPU is idle'],
  ],
  'limits release': [['limits release train', 'the container gets its allocation again']],
  suspend: [
    ['suspend', 'which containers are suspended, and why others cannot be'],
    ['suspend team-a/notebook/main', 'its GPU memory moves to the host'],
  ],
  resume: [['resume notebook', 'its GPU memory moves back']],
  'health list': [['health list', 'the health of each GPU, and what happened']],
  'health clear': [['health clear 3', 'offer GPU 3 again after a repair']],
  events: [
    ['events -f', 'print new events until you press Ctrl-C'],
    ['events -o json', 'all recent events for a script'],
  ],
  doctor: [
    ['doctor', 'with the flags of the environment'],
    ['doctor --host-root=/host --volume-config=/etc/gpu-manager/volume.conf', 'in a container'],
  ],
  version: [['version', 'this program and the agent on this node']],
  demo: [
    ['demo', 'the page of a node is at http://localhost:5678, the console at http://localhost:5680'],
    ['demo --once', 'run every step, and fail if one fails'],
  ],
  convert: [
    ['convert deployment.yaml', 'requests for nvidia.com/gpu and of HAMi as vcuda-core and vcuda-memory'],
    ['convert pod.yaml --share cores=25,memory=8GiB', 'one nvidia.com/gpu becomes a quarter'],
  ],
  topology: [
    ['topology', 'this machine'],
    ['topology topo.txt --count 4 --free 0,1,4,5,6,7', 'the best four of six GPUs of a saved matrix'],
  ],
  'plugin-proxy': [['plugin-proxy', 'keep the plugins registered while the agent restarts']],
  extender: [
    ['extender --policy binpack', 'serve kube-scheduler on 127.0.0.1:3456'],
    ['extender --explain pod.yaml', 'why the pod fits on a node, or does not'],
  ],
  'claim-webhook': [['claim-webhook --namespace gpu-system', 'serve the webhooks of resource claims']],
  console: [
    ['console', 'the cluster of your kubeconfig, on http://localhost:5680'],
    ['console --no-token-review', 'for yourself, without a token'],
  ],
  'quota validate': [['quota validate tree.yaml', 'check a tree before you apply it']],
  'quota what-if': [['quota what-if tree.yaml train.yaml web.yaml', 'which of these workloads would be admitted']],
  'quota replay': [['quota replay commands.jsonl --tree tree.yaml --report', 'run a script of commands on a tree']],
  'quota report': [['quota report store', 'the groups of a journal']],
  'quota verify': [['quota verify audit.jsonl', 'that no line was changed']],
  'quota serve': [['quota serve --arbitrator=plan', 'webhooks and controller, with planned evictions']],
  'quota tree': [
    ['quota tree', 'all groups'],
    ['quota tree --consumers', 'fair shares of namespaces'],
  ],
  'quota recommend': [
    ['quota recommend --group vision', 'what of its requests still fits, with fewer or smaller pods'],
  ],
  'quota top': [
    ['quota top', 'groups nearest to a limit'],
    ['quota top workloads --by requests.nvidia.com/gpu', 'workloads that use most GPUs'],
    ['quota top shapes --group vision', 'how often the requests of its workloads still fit, and what blocks the next'],
  ],
  'quota explain': [
    ['quota explain deploy/web --replicas 9', 'whether nine replicas would be admitted'],
    ['quota explain bizrq/vision', 'usage and conditions of a group'],
  ],
  'quota clock': [['quota clock', 'the time of the quota and of the API server']],
  'quota ledgers': [
    ['quota ledgers', 'sizes of the ledgers'],
    ['quota ledgers --merge', 'before a return to an earlier version'],
  ],
  'quota grant': [['quota grant vision cash/requests.nvidia.com/gpu 300 --name paper', '300 card-hours, once']],
  'quota lend': [
    ['quota lend vision speech requests.nvidia.com/gpu=2 --name sprint --until 7d', 'two GPUs for a week'],
  ],
  'quota transfer': [['quota transfer vision speech requests.nvidia.com/gpu=2', 'two GPUs for good']],
  completion: [['completion bash', 'source <(gpu-manager completion bash)']],
};

/** Examples in the help of `kubectl gpu COMMAND`. */
export const KUBECTL_EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  top: [
    ['top', 'all containers with a slice'],
    ['top -i', 'a full screen'],
  ],
  nodes: [['nodes -o wide', 'GPUs of every node, with models']],
  pods: [
    ['pods', 'GPU pods of your namespace'],
    ['pods -A -w', 'of all namespaces, with every change'],
  ],
  idle: [
    ['idle', 'pods of your namespace that have not used their GPUs for an hour'],
    ['idle -A --for 1d', 'of all namespaces, unused for a day'],
  ],
  usage: [
    ['usage --by pod', 'GPU-hours of the last day, of pods that have ended too'],
    ['usage --by group --since 7d -o csv', 'of each quota group in a week, for a spreadsheet'],
    ['usage --since 90d --prometheus-url http://localhost:9090', 'from Prometheus, which knows more than 35 days'],
  ],
  throttling: [['throttling train --since 1h', 'how much of the last hour a pod waited for its share, and why']],
  claims: [['claims -A -o wide', 'resource claims of all namespaces, with why they wait']],
  describe: [
    ['describe train', 'GPUs, limits, use and events of a pod'],
    ['describe node/gpu-1', 'GPUs of a node, and what enforces each limit'],
  ],
  explain: [
    ['explain train', 'why a pod waits, and what would make room for it'],
    ['explain deployment/web', 'whether quota and a node would take one more pod'],
  ],
  'limits get': [['limits get train', 'limits of a pod']],
  'limits set': [
    ['limits set train --memory 12', '12 blocks of 256 MiB'],
    ['limits set train --cores 20 --dry-run', 'whether 20 cores would be refused'],
  ],
  'limits resize': [
    ['limits resize train --cores 60 --memory 24', '60 cores and 24 blocks, where its GPU has room'],
    ['limits resize train --request', 'only what it requested'],
  ],
  'limits release': [['limits release train', 'the pod gets its allocation again']],
  suspend: [
    ['suspend notebook', 'its GPU memory waits on the host until a program uses the GPU'],
    ['suspend notebook --hold', 'until "kubectl gpu resume notebook"'],
  ],
  resume: [['resume notebook', 'its memory moves back to the GPU']],
  events: [['events -A', 'events of gpu-manager in all namespaces']],
  doctor: [['doctor gpu-node-1', 'the checks of gpu-manager doctor on that node']],
};

/** Adds the examples to the help of each command of `program`. */
export function addExamples(program: Command, examples: Readonly<Record<string, readonly Example[]>>): void {
  const visit = (command: Command, words: readonly string[]): void => {
    const own = examples[words.join(' ')] ?? [];
    const lines = own.map(([line]) => `  ${program.name()} ${line}`);
    const width = Math.max(0, ...lines.map((line) => line.length));
    if (own.length > 0)
      command.addHelpText(
        'after',
        ['', 'Examples:', ...own.map(([, result], at) => `${(lines[at] ?? '').padEnd(width)}  # ${result}`)].join('\n'),
      );
    for (const child of command.commands) visit(child, [...words, child.name()]);
  };
  for (const command of program.commands) visit(command, [command.name()]);
}
