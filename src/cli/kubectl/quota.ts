import { spawnSync } from 'node:child_process';
import { Command, InvalidArgumentError, Option } from 'commander';
import { fileReason } from '../../host/file-reason.js';
import { systemClock } from '../../host/clock.js';
import { keptAlive } from '../../host/keep-alive.js';
import { StartupError } from '../../host/startup-error.js';
import { KubeError } from '../../kube/failure.js';
import { openUserClient, type ClusterAccess } from '../../kube/open-client.js';
import { API_GROUP, API_VERSION, GROUP_KIND, GROUPS_PATH } from '../../kube/quota/names.js';
import { readQuantity } from '../../manifests/quantity.js';
import { unchargeable } from '../../quota/internal.js';
import { contextOption, kubeconfigOption } from '../cluster-options.js';
import { outputOption, print, type Output } from '../output.js';
import { quotaExplainCommand } from '../quota-explain.js';
import { quotaTopCommand } from '../quota-top.js';
import { quotaTreeCommand } from '../quota-tree.js';

interface CreateOptions extends ClusterAccess {
  readonly parent?: string;
  readonly dryRun?: true;
  readonly output: Output;
}

/** `kubectl gpu quota`: quota of the groups of a cluster. */
export function quotaCommand(): Command {
  const quota = new Command('quota').description('show, explain, create and edit the quota of groups');
  for (const command of [quotaTreeCommand(), quotaTopCommand(), quotaExplainCommand(), createCommand(), editCommand()])
    quota.addCommand(command);
  return quota;
}

function createCommand(): Command {
  return new Command('create')
    .description('create a group with its limits')
    .argument('<group>', 'name of the group')
    .argument('<limits...>', 'limits.cpu=100 gpus=8 cash/gpus=500 pods=50')
    .option('--parent <group>', 'group that gives it its quota; default: none, it is a root')
    .option('--dry-run', 'let the API server check it, and create nothing')
    .addOption(outputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action((name: string, limits: readonly string[], { parent, dryRun, output, ...access }: CreateOptions) => {
      if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u.test(name))
        throw new StartupError(`quota: "${name}" is no name of a group: expected lower case letters, digits and -`);
      const group = {
        apiVersion: API_VERSION,
        kind: GROUP_KIND,
        metadata: { name },
        spec: { parentBizGroup: parent, hard: readLimits(limits) },
      };
      return keptAlive(async () => {
        const { client } = await openUserClient(access, systemClock);
        try {
          const answer = await client.request({
            method: 'POST',
            path: GROUPS_PATH,
            body: group,
            query: dryRun === true ? { dryRun: 'All' } : undefined,
          });
          if (!answer.ok) throw new KubeError(`quota: group ${name} was not created`, answer);
          await print(output, {
            document: () => answer.body,
            table: () => `bizgroupresourcequota/${name} created${dryRun === true ? ' (dry run)' : ''}\n`,
          });
        } finally {
          client.close();
        }
      });
    });
}

/** The limits of a command line, as the specification writes them. */
function readLimits(written: readonly string[]): Readonly<Record<string, string>> {
  const hard: Record<string, string> = {};
  for (const text of written) {
    const [, key = '', amount = ''] = /^([^=]+)=(.+)$/u.exec(text) ?? [];
    if (key === '') throw new StartupError(`quota: "${text}" is no limit: expected key=amount such as limits.cpu=100`);
    const problem = unchargeable(key);
    if (problem !== null) throw new StartupError(`quota: ${problem}`);
    const read = readQuantity(key, amount, 'up');
    if (!read.ok) throw new StartupError(`quota: ${key}: ${read.reason}`);
    hard[key] = amount;
  }
  return hard;
}

function editCommand(): Command {
  return new Command('edit')
    .description('edit a group in your editor, as kubectl edit does; the quota service checks the change')
    .argument('<group>')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .addOption(
      new Option('--kubectl <program>', 'kubectl to edit with').default('kubectl').argParser((text: string) => {
        if (text === '') throw new InvalidArgumentError('Expected a program.');
        return text;
      }),
    )
    .action((name: string, { kubeconfig, context, kubectl }: ClusterAccess & { readonly kubectl: string }) => {
      const access = [
        ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
        ...(context === undefined ? [] : [`--context=${context}`]),
      ];
      const { error, status } = spawnSync(
        kubectl,
        [...access, 'edit', `bizgroupresourcequotas.${API_GROUP}`, '--', name],
        { stdio: 'inherit' },
      );
      if (error !== undefined) throw new StartupError(`quota: ${kubectl} cannot be started: ${fileReason(error)}`);
      if (status !== 0) process.exitCode = 1;
    });
}
