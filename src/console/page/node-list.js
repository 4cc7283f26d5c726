import { h } from './dom.js';
import { count, moment } from './format.js';
import { freeText, unhealthy } from './free-gpus.js';
import { gpuBars } from './gpu-bars.js';
import { middleCut } from './middle.js';
import { byName, matches } from './rows.js';

/** Number of panels in the first picture; the others follow when they are shown, some in each frame. */
const FIRST = 80;
const STEP = 200;

/** All nodes as panels. Bars are drawn for the panels near the window only: a thousand nodes have thousands of them. */
export function nodeList(rows) {
  const panels = new Map();
  const list = h('ul', { class: 'nodes' });
  let rest = null;
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const panel = panels.get(target.dataset.name);
        if (panel === undefined) continue;
        panel.isNear = isIntersecting;
        if (isIntersecting && panel.isStale) draw(panel);
      }
      // The next frame shows the first bars, and those after it bring the other panels.
      rest ??= requestAnimationFrame(placeMore);
    },
    { rootMargin: '800px 0px' },
  );

  function draw(panel) {
    panel.isStale = false;
    const node = rows.nodes.get(panel.name);
    panel.bars.replaceChildren(gpuBars(rows, node));
  }

  function make(name) {
    const element = h('li', { 'data-name': name });
    const panel = { name, element, bars: h('div', { class: 'lazy' }), isStale: true, isNear: false, rank: 0 };
    fill(panel);
    near.observe(element);
    return panel;
  }

  /** The texts of a panel, and what the filter looks at. */
  function fill(panel) {
    const node = rows.nodes.get(panel.name);
    const models = node.kinds.map(({ model }) => model).filter((model) => model !== '');
    const { problem, late, isCordoned } = node;
    const sick = unhealthy(node.gpus);
    panel.rank = rankOf(node);
    const asOf = late?.sinceMs === undefined ? '' : `as of ${moment(late.sinceMs)}`;
    const state =
      problem ??
      (late !== undefined
        ? asOf.slice(0, 'as of 2026-11-22 22:14'.length) || late.why
        : isCordoned
          ? 'cordoned'
          : sick > 0
            ? `${count(sick, 'GPU')} unhealthy, ${freeText(node.gpus)}`
            : freeText(node.gpus));
    const attention = isCordoned || problem !== undefined || late !== undefined || sick > 0;
    const title = [problem, late?.why, asOf].filter(Boolean).join(', ') || state;
    panel.element.replaceChildren(
      h(
        'a',
        {
          class: `node${problem === undefined ? '' : ' problem'}${late === undefined ? '' : ' late'}`,
          href: `#/node/${encodeURIComponent(node.name)}`,
          'data-key': `node/${node.name}`,
        },
        h(
          'span',
          { class: 'line' },
          middleCut(node.name, 'name'),
          h('span', { class: `state${attention ? ' attention' : ''}`, title }, state),
        ),
        h('span', { class: 'quiet model' }, [count(node.gpus.length, 'GPU'), ...models].join(' · ')),
        panel.bars,
      ),
    );
    panel.isStale = true;
    if (panel.isNear) draw(panel);
  }

  function textOf(name) {
    const node = rows.nodes.get(name);
    const pods = rows.podsOn(name).map((pod) => `${pod.namespace}/${pod.name}`);
    const troubles = node.gpus.flatMap(({ problem }) => (problem === undefined ? [] : ['unhealthy', problem]));
    const states = [node.problem, node.late?.why, node.isCordoned ? 'cordoned' : undefined].filter(Boolean);
    return [name, ...node.kinds.map(({ model }) => model), ...pods, ...troubles, ...states].join(' ').toLowerCase();
  }

  let words = [];

  function place(most = Infinity) {
    const names = [...rows.nodes.values()]
      .sort((a, b) => rankOf(a) - rankOf(b) || byName(a.name, b.name))
      .slice(0, most)
      .map(({ name }) => name);
    for (const name of panels.keys())
      if (!rows.nodes.has(name)) {
        near.unobserve(panels.get(name).element);
        panels.get(name).element.remove();
        panels.delete(name);
      }
    let before = null;
    for (const name of names) {
      const panel = panels.get(name) ?? make(name);
      panels.set(name, panel);
      const next = before === null ? list.firstElementChild : before.nextElementSibling;
      if (next !== panel.element) list.insertBefore(panel.element, next);
      before = panel.element;
    }
  }

  function placeMore() {
    if (panels.size >= rows.nodes.size) return;
    rest = requestAnimationFrame(() => {
      place(panels.size + STEP);
      apply();
      placeMore();
    });
  }

  function apply() {
    let shown = 0;
    for (const [name, { element }] of panels) {
      element.hidden = words.length > 0 && !matches(words, textOf(name));
      if (!element.hidden) shown += 1;
    }
    return shown;
  }

  place(FIRST);
  return {
    element: list,
    /** Draws the named nodes anew. */
    change(touched) {
      const isNew = [...touched].some(
        (name) =>
          rows.nodes.has(name) !== panels.has(name) ||
          (panels.has(name) && rankOf(rows.nodes.get(name)) !== panels.get(name).rank),
      );
      for (const name of touched) if (panels.has(name) && rows.nodes.has(name)) fill(panels.get(name));
      if (isNew) place();
    },
    /** Returns the number of nodes that are shown. */
    filter(wanted) {
      words = wanted;
      if (words.length > 0 && panels.size < rows.nodes.size) place();
      return apply();
    },
    close() {
      cancelAnimationFrame(rest);
      near.disconnect();
    },
  };
}

/** Nodes that need attention come first. */
function rankOf({ problem, late, isCordoned, gpus }) {
  if (problem !== undefined) return 0;
  if (unhealthy(gpus) > 0) return 1;
  return late !== undefined ? 2 : isCordoned ? 3 : 4;
}
