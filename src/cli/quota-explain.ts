import { Command } from 'commander';
import { keptAlive } from '../host/keep-alive.js';
import { StartupError } from '../host/startup-error.js';
import type { KubeApi } from '../kube/client.js';
import type { ClusterAccess } from '../kube/open-client.js';
import { record, text } from '../kube/json.js';
import { BundleReviews } from '../quota-controller/offline/bundle-reviews.js';
import { ManifestApi } from '../quota-controller/offline/manifest-api.js';
import { openClusterLedger, withClient, type ClusterLedger } from '../quota-controller/ledger/open-cluster-ledger.js';
import { evaluationBy } from '../quota-controller/policy/evaluation.js';
import { readFacts } from '../quota-controller/policy/read-facts.js';
import { KNOWN_KINDS, type Evaluator, type Quota, evaluatorOf } from '../quota/index.js';
import { explainDemand, whatIf, type WhatIf } from '../quota-command/what-if.js';
import { accountOf, accountText, plainAccount } from '../quota-controller/objects/group-account.js';
import { servedKinds, type ServedKind } from '../quota-controller/workloads/kinds.js';
import { GROUPS_PATH, itemPath } from '../kube/quota/names.js';
import { findSubject, findKind } from '../quota-controller/workloads/subject.js';
import { contextOption, kubeconfigOption } from './cluster-options.js';
import { wholeNumberBetween } from './flag-values.js';
import { FILENAME_OPTION, manifestsOf, type FilenameOption } from './quota-file.js';
import { formatOf, printQuota, quotaOutputOption, type QuotaOutput } from './quota-output.js';
import { refuseOptions } from './refused-options.js';

interface Options extends QuotaOutput, FilenameOption, ClusterAccess {
  readonly namespace: string;
  readonly replicas?: number;
}

const GROUP_NAMES = new Set([
  'bizrq',
  'bizgroupresourcequota',
  'bizgroupresourcequotas',
  'bizgroupresourcequotas.quota.gpu-manager.io',
]);

/** Beside the kinds of workloads. */
const NAMESPACED: ReadonlySet<string> = new Set([
  'HorizontalPodAutoscaler',
  'ResourceClaimTemplate',
  'TrainingRuntime',
]);

/** `gpu-manager quota explain`: explains why an object is, or would be, admitted or refused. */
export function quotaExplainCommand(): Command {
  return refuseOptions(new Command('explain'), {
    watch: 'it explains once; kubectl gpu quota top -w shows the groups as they change',
    selector: 'name the objects as kind/name',
    allNamespaces: 'name the namespace of the objects with -n',
  })
    .description(
      'explain why workloads are or would be admitted or refused, or the figures of a group; changes nothing',
    )
    .argument('[objects...]', 'objects of the cluster: deployment/web, pytorchjobs/train, bizrq/vision')
    .option(...FILENAME_OPTION)
    .option('-n, --namespace <name>', 'namespace of the objects', 'default')
    .option('--replicas <count>', 'evaluate the objects with this number of replicas', wholeNumberBetween(0, 1_000_000))
    .addOption(quotaOutputOption())
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .action(async (objects: readonly string[], options: Options) => {
      if (objects.length === 0 && options.filename.length === 0)
        throw new StartupError('quota: name objects as kind/name, or give manifests with -f');
      const named = objects.map(readName);
      const written = await manifestsOf(options.filename);
      await withClient(options, async (client) => {
        const { cluster, evaluators, kinds, review } = await openQuota(client);
        const manifests = written.map((manifest) => inNamespace(manifest, options.namespace, evaluators));
        const reviews = review(manifests);
        let refused = 0;
        const show = async (answer: WhatIf): Promise<void> => {
          await printQuota(options.output, answer.text);
          refused += answer.refused;
        };
        for (const { kind, name } of named) {
          if (GROUP_NAMES.has(kind.toLowerCase()))
            await printQuota(options.output, await explainGroup(cluster, name, options));
          else await show(await explainObject(cluster.ledger, reviews, kinds, kind, name, options));
        }
        await show(await whatIf(cluster.ledger, manifests, formatOf(options.output), reviews));
        if (refused > 0) process.exitCode = 1;
      });
    });
}

/** A cluster's quota, and reviews of manifests as its webhooks make them. */
async function openQuota(client: KubeApi) {
  const api: KubeApi = { request: (request) => client.request(request) };
  const told = new Set<string>();
  const missing = (reason: string): void => {
    if (!told.has(reason)) process.stderr.write(`quota: ${reason}\n`);
    told.add(reason);
  };
  const facts = await keptAlive(() => readFacts(api, missing));
  const { families, strictTypes, requireLabel, kinds: declared } = facts.policy;
  const cluster: ClusterLedger = { api, ledger: await openClusterLedger(api, { families, strictTypes }) };
  const evaluators = [...declared, ...KNOWN_KINDS];
  const kinds = await servedKinds(api, evaluators);
  const review = (manifests: readonly unknown[]): BundleReviews =>
    new BundleReviews({
      api: new ManifestApi(manifests, evaluators, api),
      evaluation: evaluationBy(facts, {}),
      kinds,
      requireLabel,
      unknownScale: 'refused',
      missing,
    });
  return { cluster, evaluators, kinds, review };
}

/** What quota says of a workload; null in a cluster without groups, and for a kind that has no quota. */
export async function quotaOf(
  client: KubeApi,
  kindName: string,
  namespace: string,
  name: string,
): Promise<WhatIf | null> {
  const groups = await client.request({ method: 'GET', path: GROUPS_PATH, query: { limit: '1' } });
  if (!groups.ok && groups.code === 'not-found') return null;
  const { cluster, kinds, review } = await openQuota(client);
  if (findKind(kinds, kindName) === null) return null;
  const options: QuotaOutput & { readonly namespace: string } = { namespace, output: 'table' };
  return explainObject(cluster.ledger, review([]), kinds, kindName, name, options);
}

async function explainGroup({ api, ledger }: ClusterLedger, name: string, { output }: Options): Promise<string> {
  const answer = await api.request({ method: 'GET', path: itemPath(GROUPS_PATH, name) });
  const account = accountOf(ledger, name, answer.ok ? answer.body : null, Date.now());
  if (account === null) throw new Error(`quota: no group ${name}`);
  return formatOf(output) === 'table' ? accountText(account) : `${JSON.stringify(plainAccount(account))}\n`;
}

async function explainObject(
  ledger: Quota,
  reviews: BundleReviews,
  kinds: readonly ServedKind[],
  kindName: string,
  name: string,
  { namespace, replicas, output }: QuotaOutput & Pick<Options, 'namespace' | 'replicas'>,
): Promise<WhatIf> {
  const kind = findKind(kinds, kindName);
  if (kind === null)
    throw new StartupError(
      `quota: the cluster has no kind "${kindName}" of workloads; there are ${kinds.map(({ evaluator }) => evaluator.kind).join(', ')} and bizrq`,
    );
  const found = await findSubject(reviews.reader, kind, namespace, name, replicas ?? null);
  if (!found.ok) throw new Error(found.reason);
  const { subject } = found;
  const answer = await explainDemand(ledger, subject.evaluation, formatOf(output), reviews);
  const owners = subject.owners.map((owner) => `  of ${owner}\n`).join('');
  return formatOf(output) === 'json' ? answer : { ...answer, text: `${subject.name}\n${owners}${answer.text}` };
}

/** As kubectl sends them: objects without a namespace belong to the namespace that the command names. */
function inNamespace(manifest: unknown, namespace: string, kinds: readonly Evaluator[]): unknown {
  const { apiVersion, kind, metadata } = record(manifest);
  const isNamespaced = evaluatorOf(kinds, text(apiVersion), text(kind)) !== undefined || NAMESPACED.has(text(kind));
  if (!isNamespaced || record(metadata).namespace !== undefined) return manifest;
  return { ...record(manifest), metadata: { namespace, ...record(metadata) } };
}

function readName(text: string): { readonly kind: string; readonly name: string } {
  const [kind = '', name = '', ...rest] = text.split('/');
  if (kind === '' || name === '' || rest.length > 0)
    throw new StartupError(`quota: "${text}" is not kind/name, such as pod/${kind || 'train'}`);
  return { kind, name };
}
