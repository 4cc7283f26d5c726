import { h } from './dom.js';
import { ago, moment } from './format.js';
import { wordsOf } from './rows.js';
import { treeTable } from './tree-table.js';

const COLUMNS = [
  ['Reserved', 'reserved'],
  ['At most', 'hard'],
  ['Fair share', 'deserved'],
  ['Used', 'allocated'],
  ['Waiting', 'pending'],
];

/** Decisions of the arbitrator: fair shares, overused consumers, victims and their beneficiaries. */
export function sharesView(rows, root, filterText) {
  const element = h('div', {});
  const draw = () => element.replaceChildren(...picture(rows, root, wordsOf(filterText())));
  draw();
  return { element, tables: ['shares', 'pods'], draw };
}

function picture(rows, root, words) {
  const all = [...rows.shares.values()];
  const plans = root === '' ? plansOf(all, rows) : [];
  const decided = all.some(({ part }) => part !== undefined);
  return [
    root === '' ? null : h('p', { class: 'back' }, h('a', { href: '#/shares' }, '← all consumers')),
    root !== ''
      ? null
      : h(
          'section',
          {},
          h('h2', {}, 'Plan of the arbitrator'),
          plans.length > 0
            ? h(
                'ul',
                { class: 'plain-list plans' },
                plans.map((plan) => h('li', {}, plan)),
              )
            : h(
                'p',
                { class: 'quiet' },
                decided
                  ? 'No pod is to be evicted: no consumer that uses more than its fair share keeps others waiting.'
                  : 'The arbitrator has written no shares: it is off, or --arbitrator=plan writes its plans as events (ReclaimPlanned).',
              ),
        ),
    h(
      'section',
      {},
      h('h2', {}, root === '' ? 'Fair shares' : `Fair shares below ${root}`),
      treeTable({
        ...{ rows: all, root, words, view: 'shares' },
        first: 'Consumer',
        columns: COLUMNS.map(([title]) => title),
        titleOf,
        linesOf,
        nothing: root === '' ? 'The cluster has no Consumer.' : `The cluster has no Consumer ${root}.`,
      }),
    ),
  ].filter((part) => part !== null);
}

/** Planned and past actions of the arbitrator, as sentences. */
function plansOf(all, rows) {
  const now = Date.now();
  const reclaimed = all
    .filter(({ reclaimAtMs }) => reclaimAtMs !== undefined)
    .map(({ name, amounts, reclaimAtMs }) => {
      const resources = amounts.filter(({ isOverused }) => isOverused).map(({ resource }) => resource);
      return `${name} uses more than its fair share of ${resources.join(', ')} while others wait: its pods may be evicted from ${moment(reclaimAtMs)} on.`;
    });
  const evicted = all.flatMap(({ name, reclaimedFor }) =>
    reclaimedFor.map(({ name: to, atMs }) => `Pods of ${name} were evicted for ${to}, ${ago(atMs, now)}.`),
  );
  const nominated = rows
    .waiting()
    .filter(({ nominatedNode }) => nominatedNode !== undefined)
    .map(
      ({ namespace, name, nominatedNode }) =>
        `Room on ${nominatedNode} is kept for the waiting pod ${namespace}/${name}.`,
    );
  return [...reclaimed, ...evicted, ...nominated];
}

function titleOf({ weight, isSystem, part }) {
  return [
    ...(isSystem ? ['served first'] : []),
    ...(weight === 1 ? [] : [`weight ${weight}`]),
    ...(part === undefined ? [] : [`${Math.round(part * 100)} % of the cluster`]),
  ].join(' · ');
}

function linesOf({ amounts }) {
  if (amounts.length === 0)
    return [
      { cells: h('td', { colspan: COLUMNS.length + 1, class: 'quiet' }, 'It uses nothing and asks for nothing.') },
    ];
  return amounts.map((amount) => ({
    class: amount.isOverused ? 'overused' : null,
    cells: [
      h('th', { scope: 'row', class: 'limit-key' }, amount.resource),
      ...COLUMNS.map(([, column]) => h('td', {}, amount[column] ?? '–')),
    ],
  }));
}
