import { h } from './dom.js';
import { count, moment, seconds } from './format.js';
import { read } from './stream.js';

const PERIOD_MS = 10_000;

/**
 * Why a waiting pod waits, in one place (`uidOf()` is undefined without one): what each node lacks, the nearest fit, its pod group, and its quota. The
 * console places the pod on the nodes and pods of this moment, as `kubectl gpu explain` does.
 */
export function explanationView(rows, uidOf, keepingPlace) {
  const element = h('section', { class: 'explanation', 'aria-live': 'polite' });
  let told = null;
  let timer = null;
  let closed = false;

  function draw() {
    const pod = rows.pods.get(uidOf());
    element.hidden = pod?.state !== 'waiting';
    if (!element.hidden) element.replaceChildren(...picture(rows, pod, told));
  }

  async function ask() {
    const uid = uidOf();
    if (rows.pods.get(uid)?.state === 'waiting') {
      try {
        told = (await read(`api/explain?pod=${encodeURIComponent(uid)}`)) ?? told;
      } catch {
        // The line at the top says that the console is away; what was seen last stays.
      }
      if (!closed) keepingPlace(draw);
    }
    if (!closed) timer = setTimeout(ask, PERIOD_MS);
  }

  draw();
  void ask();
  return {
    element,
    draw,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function picture(rows, pod, told) {
  const explanation = told?.ok === true ? told.explanation : null;
  const facts = [
    ['The scheduler says', pod.why],
    ...(explanation?.noGpu === undefined ? [] : [['GPUs', `The pod ${explanation.noGpu}.`]]),
    ...(explanation?.gang === undefined ? [] : [['Pod group', explanation.gang.replace(/^pod group /u, '')]]),
    ...(explanation?.nearest === undefined ? [] : [['Nearest fit', nearestFit(rows, explanation.nearest)]]),
    ...quotaOf(rows, pod),
  ];
  return [
    h('h3', {}, 'Why it waits'),
    h(
      'dl',
      { class: 'reasons' },
      facts.map(([title, value]) => h('div', {}, h('dt', {}, title), h('dd', {}, value))),
    ),
    told === null
      ? h('p', { class: 'quiet' }, 'Placing the pod on the nodes of this moment…')
      : told.ok
        ? nodesOf(explanation)
        : h('p', { class: 'quiet' }, `The nodes cannot be explained now: ${told.reason}.`),
  ].filter((part) => part !== null);
}

/** The node on which fewest pods must end, these pods, when they end, and whether they may be evicted. */
function nearestFit(rows, { node, pods, others, endsAtMs, mayPreempt }) {
  const named = pods.map(({ namespace, name }) => podLink(rows, namespace, name));
  const unseen = others === 0 ? [] : [count(others, 'pod that you may not see', 'pods that you may not see')];
  const who = [...named, ...unseen].flatMap((one, at) => (at === 0 ? [one] : [', ', one]));
  const end = named.length + others === 1 ? 'ends' : 'end';
  const eviction = mayPreempt ? ' Their priority is lower, so the scheduler may evict them.' : '';
  return [`${node}, when `, ...who, ` ${end}. ${whenText(endsAtMs, pods)}${eviction}`];
}

/** When all of them end, or the ends that are known. */
function whenText(endsAtMs, pods) {
  if (endsAtMs !== undefined) return `That is by ${endText(endsAtMs)}.`;
  const known = pods.filter((pod) => pod.endsAtMs !== undefined);
  if (known.length === 0) return 'No end of them is known.';
  return `${known.map((pod) => `${pod.name} ends by ${endText(pod.endsAtMs)}`).join('; ')}; the other ends are not known.`;
}

function endText(ms) {
  const left = ms - Date.now();
  return `${moment(ms)}${left <= 0 ? ', which is over' : `, in ${seconds(Math.ceil(left / 1000))}`}`;
}

function podLink(rows, namespace, name) {
  const pod = [...rows.pods.values()].find((one) => one.namespace === namespace && one.name === name);
  const text = `${namespace}/${name}`;
  return pod === undefined ? text : h('a', { class: 'branch', href: `#/pod/${pod.uid}` }, text);
}

/** The limits and hours of its group and of the groups above that hold back more pods. */
function quotaOf(rows, { group }) {
  if (group === undefined || rows.absenceOf('groups') !== null) return [];
  const chain = [];
  // A fixed group has its quota for itself; an elastic one borrows from the groups above.
  for (let row = rows.groups.get(group); row !== undefined && !chain.includes(row.name);) {
    chain.push(row.name);
    row = row.isElastic ? rows.groups.get(row.parent) : undefined;
  }
  const lines = chain.flatMap((name) => groupLines(rows.groups.get(name)).map((line) => `${name}: ${line}`));
  const link = h('a', { class: 'branch', href: `#/quota/${encodeURIComponent(group)}` }, group);
  const what =
    chain.length === 0
      ? ': the cluster has no group of this name.'
      : lines.length === 0
        ? ' admitted the pod, and has room for more.'
        : ` admitted the pod. ${lines.join('. ')}.`;
  return [['Quota', ['Group ', link, what]]];
}

function groupLines({ limits, hours, notes }) {
  const spent = hours.filter(({ part = 0 }) => part >= 1);
  return [
    ...limits
      .filter(({ part = 0 }) => part >= 1)
      .map(({ key, hard, used }) => `${used} of ${hard} ${key} are used, so it admits no more`),
    ...spent.map(
      ({ key, nextMs }) =>
        `no hours of ${key} are left${nextMs === undefined ? '' : `, the next are granted at ${moment(nextMs)}`}`,
    ),
    ...notes,
  ];
}

/** For each node what is missing. */
function nodesOf({ noGpu, nodes, total, fit, atMs }) {
  if (noGpu !== undefined) return null;
  if (nodes === undefined)
    return h('p', { class: 'quiet' }, `It fits on ${fit} of ${count(total, 'node')}. You may not list the nodes.`);
  const rest = total - nodes.length;
  return h(
    'div',
    {},
    h('h3', {}, `${fit} of ${count(total, 'node')} fit`),
    h(
      'table',
      { class: 'quota nodes-explained' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Node'), h('th', { scope: 'col' }, 'What is missing'))),
      h(
        'tbody',
        {},
        nodes.map(({ node, fits, reason }) =>
          h(
            'tr',
            { class: fits ? 'fits' : null },
            h(
              'th',
              { scope: 'row' },
              h('a', { class: 'branch', href: `#/node/${encodeURIComponent(node)}`, 'data-key': `node/${node}` }, node),
            ),
            h('td', {}, fits ? 'nothing' : reason),
          ),
        ),
      ),
    ),
    h(
      'p',
      { class: 'quiet note' },
      `${rest > 0 ? `${count(rest, 'more node')} not shown. ` : ''}Nodes and pods as of ${moment(atMs)}.`,
    ),
  );
}
