import { h } from './dom.js';
import { count, moment } from './format.js';
import { wordsOf } from './rows.js';
import { shapesView } from './shapes-view.js';
import { meter, treeTable } from './tree-table.js';

/** The quota tree: limits and use of groups, and the hours of their budgets. With a group, only what is below it. */
export function quotaView(rows, root, filterText) {
  const tree = h('div', {});
  const draw = () => tree.replaceChildren(...picture(rows, root, wordsOf(filterText())));
  draw();
  const shapes = root === '' ? null : shapesView(root);
  return {
    element: h('div', {}, tree, shapes?.element ?? ''),
    tables: ['groups', 'events'],
    draw,
    close: () => shapes?.close(),
  };
}

/** Groups for which the API server refuses pods now, as the reports of their controllers say. */
function refusedGroups(rows) {
  const messages = [...rows.events.values()].flatMap(({ kind, message }) => (kind === 'FailedCreate' ? [message] : []));
  return new Set(
    messages.flatMap((message) => [...message.matchAll(/exceeded quota: ([^,;\s]+),/gu)].map(([, name]) => name)),
  );
}

function picture(rows, root, words) {
  const refused = refusedGroups(rows);
  return [
    root === '' ? null : h('p', { class: 'back' }, h('a', { href: '#/quota' }, '← all groups')),
    h(
      'section',
      {},
      h('h2', {}, root === '' ? 'Quota' : `Quota below ${root}`),
      treeTable({
        ...{ rows: rows.groups.values(), root, words, view: 'quota' },
        first: 'Group',
        columns: ['Limit', 'Used', 'Itself', 'Use'],
        titleOf,
        linesOf: (row) => linesOf(row, refused.has(row.name)),
        nothing: root === '' ? 'The cluster has no quota group.' : `The cluster has no quota group ${root}.`,
      }),
      h(
        'p',
        { class: 'quiet note' },
        'Used is what the workloads of the group itself use, and what the groups below have.',
      ),
    ),
  ].filter((part) => part !== null);
}

function titleOf({ isElastic, workloads, reservations, exhaustsAtMs }) {
  return [
    count(workloads, 'workload'),
    ...(reservations === 0 ? [] : [`${reservations} reserved`]),
    ...(isElastic ? ['elastic'] : []),
    ...(exhaustsAtMs === undefined ? [] : [`hours last until ${moment(exhaustsAtMs)}`]),
  ].join(' · ');
}

function linesOf({ limits, hours }, isRefused) {
  return [
    ...limits.map((limit) => ({ cells: cells(limit.key, limit, isRefused) })),
    ...hours.map((budget) => ({ class: 'hours', cells: cells(hoursOf(budget), budget, isRefused) })),
  ];
}

/** A budget's key, what is left of it, and how fast it is used. */
function hoursOf({ key, left, rate, nextMs }) {
  const facts = [
    ...(left === undefined ? [] : [`${short(left)} left`]),
    ...(rate === undefined ? [] : [`${short(rate)} per hour now`]),
    ...(nextMs === undefined ? [] : [`next grant ${moment(nextMs)}`]),
  ];
  return [`hours of ${key}`, facts.length === 0 ? null : h('span', { class: 'quiet' }, ` ${facts.join(', ')}`)];
}

/** A full bar is red only where something is refused. */
function cells(name, { hard, used, selfUsed, part }, isRefused) {
  return [
    h('th', { scope: 'row', class: 'limit-key' }, name),
    ...[hard, used, selfUsed].map((amount) => h('td', {}, amount === undefined ? '–' : short(amount))),
    meter(part, part > 1 || (part >= 1 && isRefused)),
  ];
}

/** An amount with two decimals at most. */
function short(amount) {
  return amount.replace(/(\.\d\d)\d+$/u, '$1');
}
