import { h } from './dom.js';
import { ago, bytes } from './format.js';
import { middleCut } from './middle.js';
import { paged } from './paged.js';
import { byName, matches } from './rows.js';

/** Pods as a table. `showsWhy` adds why they wait; `nothing` is said without pods. */
export function podTable(rows, pods, words, { showsWhy = false, nothing = 'No pod requests GPUs.' } = {}) {
  const found = pods
    .filter((pod) =>
      matches(words, `${pod.namespace}/${pod.name} ${pod.node ?? ''} ${pod.workload ?? ''}`.toLowerCase()),
    )
    .sort(inOrder);
  if (found.length === 0)
    return h('p', { class: 'quiet' }, words.length > 0 && pods.length > 0 ? 'No pod matches the filter.' : nothing);
  const body = h('ul', { class: `pods${showsWhy ? ' why' : ''}` });
  const now = Date.now();
  const more = paged(body, found, (pod) => row(pod, rows.markOf(pod), now, showsWhy));
  return h('div', {}, heads('Pod', 'Asks for', 'Where', 'State'), body, more);
}

const ORDER = ['refused', 'waiting', 'starting', 'ending', 'running'];

/** What needs attention first, and there what has waited longest; the others by name. */
function inOrder(a, b) {
  const rank = ORDER.indexOf(a.state) - ORDER.indexOf(b.state);
  const wait = a.state === 'running' ? 0 : (a.sinceMs ?? Infinity) - (b.sinceMs ?? Infinity);
  return rank || (Number.isNaN(wait) ? 0 : wait) || byName(a.namespace, b.namespace) || byName(a.name, b.name);
}

/** The heads of the columns above a list of pods or claims. */
export function heads(...titles) {
  return h(
    'div',
    { class: 'pod heads' },
    h('span', {}),
    titles.map((title) => h('span', {}, title)),
  );
}

function row(pod, mark, now, showsWhy) {
  const gpus = pod.slices.flatMap(({ gpu }) => gpu ?? []);
  const where =
    pod.node === undefined ? '' : `${pod.node}${gpus.length === 0 ? '' : ` · GPU ${[...new Set(gpus)].join(', ')}`}`;
  return h(
    'li',
    {},
    h(
      'a',
      {
        class: `pod ${mark}`,
        href: `#/pod/${pod.uid}`,
        'data-key': `pod/${pod.uid}`,
      },
      h('span', { class: 'swatch', 'aria-hidden': true }),
      h(
        'span',
        { class: 'name', title: `${pod.namespace}/${pod.name}` },
        middleCut(pod.name, 'pod-name'),
        h('span', { class: 'quiet' }, [pod.namespace, pod.workload].filter((part) => part !== undefined).join(' · ')),
      ),
      h('span', { class: 'asked' }, askedText(pod), useOf(pod, now)),
      middleCut(where, 'where quiet'),
      h(
        'span',
        { class: `state ${pod.state}` },
        pod.state,
        pod.sinceMs === undefined
          ? null
          : h('span', { class: 'quiet' }, ` ${ago(pod.sinceMs, now).replace(' ago', '')}`),
      ),
      showsWhy && pod.why !== undefined ? h('span', { class: 'reason' }, pod.why) : null,
    ),
  );
}

/** What a pod uses, or since when it does not, where its agent told. */
function useOf({ usedPercent, lastUsedMs }, now) {
  if (usedPercent === undefined) return null;
  const text =
    usedPercent > 0
      ? `uses ${usedPercent} %`
      : lastUsedMs === null
        ? 'never used'
        : now - lastUsedMs < 120_000
          ? 'uses 0 %'
          : `last used ${ago(lastUsedMs, now)}`;
  return h('span', { class: 'quiet use' }, text);
}

function askedText({ slices, foreign = [] }) {
  if (slices.length === 0) return foreign.join(', ');
  const cores = slices.reduce((sum, slice) => sum + slice.cores, 0);
  const memory = slices.reduce((sum, slice) => sum + slice.memoryBytes, 0);
  return `${cores} cores${memory === 0 ? '' : `, ${bytes(memory)}`}`;
}
