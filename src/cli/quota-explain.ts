import { Command, InvalidArgumentError } from 'commander';
import { StartupError } from '../host/startup-error.js';
import { withClusterLedger, type ClusterLedger } from '../quota-controller/open-cluster-ledger.js';
import { KNOWN_KINDS } from '../quota/index.js';
import { explainDemand, whatIf, type WhatIf } from '../quota/command/what-if.js';
import { accountOf, accountText, plainAccount } from '../quota-controller/group-account.js';
import { servedKinds } from '../quota-controller/kinds.js';
import { GROUPS_PATH, itemPath } from '../quota-controller/names.js';
import { findSubject, kindCalled } from '../quota-controller/subject.js';
import { FILENAME_OPTION, manifestsOf, type FilenameOption } from './quota-file.js';
import { QUOTA_KUBECONFIG, quotaOutputOption, type QuotaOutput } from './quota-output.js';

interface Options extends QuotaOutput, FilenameOption {
  readonly namespace: string;
  readonly replicas?: number;
  readonly kubeconfig?: string;
}

const GROUP_NAMES = new Set([
  'bizrq',
  'bizgroupresourcequota',
  'bizgroupresourcequotas',
  'bizgroupresourcequotas.quota.gpu-manager.io',
]);

/** `gpu-manager quota explain`: why something is, or would be, admitted or refused. */
export function quotaExplainCommand(): Command {
  return new Command('explain')
    .description(
      'explain why workloads are or would be admitted or refused, or the figures of a group; changes nothing',
    )
    .argument('[objects...]', 'objects of the cluster: deployment/web, pytorchjobs/train, bizrq/vision')
    .option(...FILENAME_OPTION)
    .option('-n, --namespace <name>', 'namespace of the objects', 'default')
    .option('--replicas <count>', 'evaluate the objects with this number of replicas', count)
    .addOption(quotaOutputOption())
    .option(...QUOTA_KUBECONFIG)
    .action(async (objects: readonly string[], options: Options) => {
      if (objects.length === 0 && options.filename.length === 0)
        throw new StartupError('quota: name objects as kind/name, or give manifests with -f');
      const named = objects.map(readName);
      const manifests = await manifestsOf(options.filename);
      await withClusterLedger(options.kubeconfig, async (cluster) => {
        let refused = 0;
        const show = (answer: WhatIf): void => {
          process.stdout.write(answer.text);
          refused += answer.refused;
        };
        for (const { kind, name } of named) {
          if (GROUP_NAMES.has(kind.toLowerCase())) process.stdout.write(await explainGroup(cluster, name, options));
          else show(await explainObject(cluster, kind, name, options));
        }
        show(whatIf(cluster.ledger, manifests, options.output, {}));
        if (refused > 0) process.exitCode = 1;
      });
    });
}

async function explainGroup({ api, ledger }: ClusterLedger, name: string, { output }: Options): Promise<string> {
  const answer = await api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
  const account = accountOf(ledger, name, answer.ok ? answer.body : null, Date.now());
  if (account === null) throw new Error(`quota: no group ${name}`);
  return output === 'table' ? accountText(account) : `${JSON.stringify(plainAccount(account))}\n`;
}

async function explainObject(
  { api, ledger }: ClusterLedger,
  kindName: string,
  name: string,
  { namespace, replicas, output }: Options,
): Promise<WhatIf> {
  const kinds = await servedKinds(api, KNOWN_KINDS);
  const kind = kindCalled(kinds, kindName);
  if (kind === null)
    throw new StartupError(
      `quota: the cluster has no kind "${kindName}" whose pods are known; there are ${kinds.map(({ evaluator }) => evaluator.kind).join(', ')} and bizrq`,
    );
  const found = await findSubject(api, kinds, kind, namespace, name, replicas ?? null);
  if (!found.ok) throw new Error(found.reason);
  const { subject } = found;
  const answer = explainDemand(ledger, subject.evaluation, output);
  const owners = subject.owners.map((owner) => `  of ${owner}\n`).join('');
  return output === 'json' ? answer : { ...answer, text: `${subject.name}\n${owners}${answer.text}` };
}

function readName(text: string): { readonly kind: string; readonly name: string } {
  const [kind = '', name = '', ...rest] = text.split('/');
  if (kind === '' || name === '' || rest.length > 0) throw new StartupError(`quota: "${text}" is not kind/name`);
  return { kind, name };
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 1e6) throw new InvalidArgumentError('not a number of replicas');
  return value;
}
