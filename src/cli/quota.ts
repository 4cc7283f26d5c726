import { createReadStream } from 'node:fs';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { fileReason } from '../host/file-reason.js';
import { StartupError } from '../host/startup-error.js';
import {
  openAuditFile,
  verifyAuditStream,
  linesOf,
  type Policy,
  unchargeable,
  JournalStore,
  Quota,
  createEngine,
  type GroupSpec,
  type QuotaEvent,
} from '../quota/internal.js';
import { plainStatus } from '../quota-command/report.js';
import { replay, reportOf, scriptProblem, statusesOf } from '../quota-command/replay.js';
import { readTree } from '../quota-command/tree-file.js';
import { readManifests } from '../quota-command/manifest-file.js';
import { whatIf } from '../quota-command/what-if.js';
import { offlineReviews } from '../quota-controller/offline/offline-reviews.js';
import { quotaClockCommand } from './quota-clock.js';
import { quotaLedgersCommand } from './quota-ledgers.js';
import { quotaRemoveCommand } from './quota-remove.js';
import { quotaExplainCommand } from './quota-explain.js';
import { FILENAME_OPTION, contentOf, manifestsOf, type FilenameOption } from './quota-file.js';
import { quotaGrantCommand, quotaLendCommand, quotaTransferCommand } from './quota-give.js';
import { print, type Output } from './output.js';
import { formatOf, printQuota, quotaOutputOption, type QuotaOutput } from './quota-output.js';
import { quotaServeCommand } from './quota-serve.js';
import { existingStore } from './quota-store.js';
import { quotaRecommendCommand } from './quota-recommend.js';
import { quotaTopCommand } from './quota-top.js';
import { quotaTreeCommand } from './quota-tree.js';

interface ReplayOptions extends QuotaOutput {
  readonly tree?: string;
  readonly store?: string;
  readonly audit?: string;
  readonly report?: true;
}

interface VerifyOptions extends QuotaOutput {
  readonly head?: string;
  readonly skipLog?: true;
}

interface WhatIfOptions extends QuotaOutput, FilenameOption {
  readonly policy: readonly string[];
}

/**
 * `gpu-manager quota`: the quota engine on files, without a cluster; `serve` runs it in a cluster; `tree`, `top` and
 * `explain` show a cluster's quota.
 */
export function quotaCommand(): Command {
  const quota = new Command('quota').description(
    'validate quota trees, try manifests and scripts, verify audit files; serve and inspect quota in a cluster',
  );
  quota
    .command('validate')
    .description('check a tree of groups')
    .argument('<tree>', 'YAML: groups, or BizGroupResourceQuota objects; - for standard input')
    .addOption(quotaOutputOption())
    .action(async (tree: string, { output }: QuotaOutput) => {
      const engine = build(await treeOf(tree));
      await show(engine, output, 0);
    });
  quota
    .command('what-if')
    .description('tell for each object, in order, whether it would be admitted, and why not')
    .argument('<tree>', 'YAML: groups, or BizGroupResourceQuota objects')
    .argument('[manifests...]', 'YAML or JSON of any objects, as helm template writes it; - for standard input')
    .option(...FILENAME_OPTION)
    .option(
      '--policy <file>',
      'QuotaPolicy that applies to the workloads, and the objects that it refers to: Nodes, Namespaces, LimitRanges, RuntimeClasses, CustomResourceDefinitions; may be repeated',
      (file: string, files: readonly string[]) => [...files, file],
      [],
    )
    .addOption(quotaOutputOption())
    .action(async (tree: string, named: readonly string[], { filename, policy, output }: WhatIfOptions) => {
      const files = [...named, ...filename];
      if (files.length === 0) throw new StartupError('quota: name manifests, or - for standard input');
      const content = await contentOf(tree);
      const groups = groupsOf(tree, content);
      // The tree also says which namespaces may use a group.
      const read = readManifests(content);
      // All files form one bundle: an object of one file may refer to an object of another one.
      const manifests = await manifestsOf(files);
      const given = [...(await manifestsOf(policy)), ...manifests];
      const { reviews, enginePolicy, problems } = await offlineReviews([...(read.ok ? read.manifests : []), ...given]);
      for (const problem of problems) process.stderr.write(`quota: ${problem}\n`);
      const { text: answer, refused } = await whatIf(build(groups, enginePolicy), manifests, formatOf(output), reviews);
      await printQuota(output, answer);
      if (refused > 0) process.exitCode = 1;
    });
  quota
    .command('replay')
    .description('run a script of commands: one JSON object per line, with its time')
    .argument(
      '<script>',
      'createGroup, updateGroup, deleteGroup, admit, reserve, scale, checkHpa, podStarted, podStopped, release, grant, loan, transfer, status; - for standard input',
    )
    .addOption(quotaOutputOption())
    .option('--tree <file>', 'groups that exist at the start')
    .option('--store <directory>', 'keep the state in a journal in this directory, and continue an existing journal')
    .option('--audit <file>', 'append every event to a hash-chained audit file')
    .option('--report', 'show usage and usage meters of all groups at the end')
    .action(replayScript);
  quota
    .command('report')
    .description('show usage and usage meters of all groups of a journal, at its last time')
    .argument('<directory>', 'the directory of replay --store')
    .addOption(quotaOutputOption())
    .action(async (directory: string, { output }: QuotaOutput) => {
      // A store that is in use is read up to its last complete record.
      const store = await existingStore(directory, { readOnly: true });
      const engine = await createEngine({ store, clock: () => 0 });
      try {
        await show(engine, output, engine.now);
      } finally {
        await engine.close();
      }
    });
  quota
    .command('verify')
    .description('verify that no line of an audit file was changed, removed or inserted')
    .argument('<file>', 'of replay --audit or serve --audit; - for standard input')
    .option('--head <digest>', 'expected digest of the last line; detects a truncated file')
    .option('--skip-log', 'skip log lines between the audit lines, as kubectl logs prints them')
    .addOption(quotaOutputOption())
    .action(async (file: string, { head, skipLog, output }: VerifyOptions) => {
      const input = file === '-' ? process.stdin : createReadStream(file);
      const verified = await verifyAuditStream(input, head, skipLog).catch((error: unknown) => {
        throw new StartupError(`quota: ${file}: ${fileReason(error)}`);
      });
      if (!verified.ok) throw new Error(`${file}: line ${verified.line}: ${verified.reason}`);
      const { sequence, digest } = verified.end;
      await print(output, {
        document: () => ({ events: sequence, lastDigest: digest }),
        table: () => `${sequence} events, last digest ${digest}\n`,
      });
    });
  for (const command of [
    quotaServeCommand(),
    quotaTreeCommand(),
    quotaTopCommand(),
    quotaRecommendCommand(),
    quotaExplainCommand(),
    quotaClockCommand(),
    quotaLedgersCommand(),
    quotaRemoveCommand(),
    quotaGrantCommand(),
    quotaLendCommand(),
    quotaTransferCommand(),
  ])
    quota.addCommand(command);
  return quota;
}

async function replayScript(script: string, { output, tree, store, audit, report }: ReplayOptions): Promise<void> {
  const groups = tree === undefined ? [] : await treeOf(tree);
  // Standard input can be read only once, so it is buffered.
  const buffered = script === '-' ? (await text(process.stdin)).split('\n') : null;
  const lines = () => buffered ?? linesOf(createReadStream(script));
  const problem = await scriptProblem(lines(), {}).catch(fileReason);
  if (problem !== null) throw new StartupError(`quota: ${script}: ${problem}`);
  const opened = audit === undefined ? null : await openAuditFile(audit);
  if (opened?.ok === false) throw new StartupError(`quota: ${audit ?? ''}: line ${opened.line}: ${opened.reason}`);
  const engine =
    store === undefined ? new Quota() : await createEngine({ store: await JournalStore.open(store), clock: () => 0 });
  if (opened !== null) engine.on((event: QuotaEvent) => opened.file.append(event));
  try {
    for (const group of groups) {
      const decision = await engine.execute({ type: 'createGroup', ...group }, engine.now);
      if (!decision.allowed && decision.code !== 'AlreadyExists') throw new Error(`${group.name}: ${decision.message}`);
    }
    const rows = (row: string): void => void printQuota(output, row);
    await replay(lines(), engine, formatOf(output), {}, rows);
    if (report === true) await show(engine, output, engine.now);
  } finally {
    if ('close' in engine) await engine.close();
    const end = await opened?.file.close();
    if (end !== undefined) process.stderr.write(`${audit ?? ''}: ${end.sequence} events, last digest ${end.digest}\n`);
  }
}

function show(engine: Pick<Quota, 'groups' | 'status'>, output: Output, at: number): Promise<void> {
  const statuses = statusesOf(engine, null, at);
  return printQuota(
    output,
    formatOf(output) === 'table'
      ? reportOf(statuses)
      : statuses.map((status) => `${JSON.stringify(plainStatus(status))}\n`).join(''),
  );
}

async function treeOf(file: string): Promise<readonly GroupSpec[]> {
  return groupsOf(file, await contentOf(file));
}

function groupsOf(file: string, content: string): readonly GroupSpec[] {
  const read = readTree(content);
  if (!read.ok) throw new StartupError(`quota: ${file}: ${read.problems.join('; ')}`);
  if (read.groups.length === 0)
    throw new StartupError(`quota: ${file}: no groups; expected a list of groups, or BizGroupResourceQuota objects`);
  return read.groups;
}

/** Creates the groups of a tree, or reports the problems of all of them. */
function build(groups: readonly GroupSpec[], policy: Partial<Policy> = {}): Quota {
  const engine = new Quota({ policy });
  const problems: string[] = [];
  for (const group of groups) {
    const pointless = Object.keys(group.hard).flatMap((key) => unchargeable(key) ?? []);
    if (pointless.length > 0) {
      problems.push(...pointless.map((problem) => `${group.name}: UnknownKey: ${problem}`));
      continue;
    }
    const decision = engine.createGroup(group);
    if (!decision.allowed) problems.push(`${group.name}: ${decision.message}`);
    for (const { code, reason } of decision.warnings) process.stderr.write(`${group.name}: ${code}: ${reason}\n`);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return engine;
}
