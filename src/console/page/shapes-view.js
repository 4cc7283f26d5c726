import { h } from './dom.js';
import { count, moment } from './format.js';
import { read } from './stream.js';
import { switchButton } from './switch-dialog.js';
import { tableOf } from './table.js';

const PERIOD_MS = 10_000;

/**
 * How often requests still fit, and what blocks the next: of pods on the nodes of the cluster, or with a group, of the
 * workloads of the group and the groups below it. A group also has its workloads.
 */
export function shapesView(group = '') {
  const body = h('div', {}, h('p', { class: 'quiet' }, 'Counting…'));
  const shapes = h('section', { class: 'shapes' }, h('h2', {}, 'What still fits'), body);
  const charged = h('div', {}, h('p', { class: 'quiet' }, 'Reading…'));
  const workloads = h('section', { class: 'shapes' }, h('h2', {}, 'Workloads'), charged);
  const element = h('div', {}, group === '' ? null : workloads, shapes);
  const path = group === '' ? 'api/shapes' : `api/shapes?group=${encodeURIComponent(group)}`;
  let timer = null;
  let closed = false;

  async function ask() {
    try {
      const told = await read(path);
      if (closed) return;
      body.replaceChildren(...picture(told, group !== ''));
      charged.replaceChildren(...workloadsOf(told, () => void askAgain()));
    } catch {
      // What was seen last stays; the line at the top says if the console is away.
    }
    if (!closed) timer = setTimeout(ask, PERIOD_MS);
  }

  function askAgain() {
    clearTimeout(timer);
    return ask();
  }

  void ask();
  return {
    element,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function picture(told, isOfGroup) {
  if (!told.ok) return [h('p', { class: 'quiet' }, `Not shown: ${told.reason}.`)];
  const { shapes, more, atMs } = told;
  const what = isOfGroup ? 'workload' : 'pod';
  if (shapes.length === 0) return [h('p', { class: 'quiet' }, `No ${what} requests anything.`)];
  const columns = isOfGroup
    ? ['Request', 'Group', 'Workloads', 'Fits', 'The next lacks']
    : ['Request', 'Pods', 'Fits', 'On', 'The next lacks'];
  const lines = shapes.map((shape) => ({
    class: shape.fits === 0 ? 'overused' : null,
    cells: isOfGroup
      ? [shape.request, shape.group, shape.count, shape.fits, lacks(shape, false)]
      : [shape.request, shape.count, shape.fits, where(shape), lacks(shape, true)],
  }));
  return [
    tableOf(columns, lines),
    h(
      'p',
      { class: 'quiet note' },
      [
        ...(more === 0 ? [] : [`${count(more, 'more request')} not shown.`]),
        'Each request is counted alone.',
        isOfGroup
          ? 'Quota only: the nodes may have less room.'
          : 'Selectors are not looked at. Placement: the sums suffice, but GPUs are free in pieces that are too small.',
        `As of ${moment(atMs)}.`,
      ].join(' '),
    ),
  ];
}

/** The workloads of a group that take most of its limits. `changed` is called after one was stopped or resumed. */
function workloadsOf(told, changed) {
  if (!told.ok) return [h('p', { class: 'quiet' }, `Not shown: ${told.reason}.`)];
  const { workloads = [], moreWorkloads = 0, atMs } = told;
  const more = moreWorkloads === 0 ? '' : `${count(moreWorkloads, 'more workload')} not shown. `;
  const lines = workloads.map((workload) => {
    const { group, kind, namespace, name, pods, isReserved, charged } = workload;
    const place = `${namespace}/${name}`;
    const action = workload.stoppable === undefined || isReserved ? '' : switchButton(workload, changed);
    return {
      class: null,
      cells: [place, isReserved ? `${kind}, reserved` : kind, group, pods, charged.join(', ') || '–', action],
    };
  });
  return [
    lines.length === 0
      ? h('p', { class: 'quiet' }, 'No workload that you may see is charged.')
      : tableOf(['Workload', 'Kind', 'Group', 'Pods', 'Charged', ''], lines),
    h('p', { class: 'quiet note' }, `${more}Those that take most of a limit come first. As of ${moment(atMs)}.`),
  ];
}

function where({ where: best, places }) {
  const named = best.map(({ name, fits }) => `${name} (${fits.toLocaleString('en')})`).join(', ');
  return places > best.length ? `${named} and ${count(places - best.length, 'more node')}` : named || '–';
}

function lacks({ blockedBy }, showsPlaces) {
  return blockedBy.map(({ key, places }) => (showsPlaces ? `${key} on ${count(places, 'node')}` : key)).join(', ');
}
