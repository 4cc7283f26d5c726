import { h } from './dom.js';
import { count, moment, trimmed } from './format.js';
import { gpuBars } from './gpu-bars.js';
import { byName, matches } from './rows.js';

/** So many cards are made before the first picture; the others follow when it is shown. */
const FIRST = 80;

/** All nodes as cards. Bars are drawn for the cards near the window only: a thousand nodes have thousands of them. */
export function nodeList(rows) {
  const cards = new Map();
  const list = h('ul', { class: 'nodes' });
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const card = cards.get(target.dataset.name);
        if (card === undefined) continue;
        card.isNear = isIntersecting;
        if (isIntersecting && card.isStale) draw(card);
      }
    },
    { rootMargin: '800px 0px' },
  );

  function draw(card) {
    card.isStale = false;
    const node = rows.nodes.get(card.name);
    card.bars.replaceChildren(gpuBars(rows, node));
  }

  function make(name) {
    const element = h('li', { 'data-name': name });
    const card = { name, element, bars: h('div', { class: 'lazy' }), isStale: true, isNear: false };
    fill(card);
    near.observe(element);
    return card;
  }

  /** The texts of a card, and what the filter looks at. */
  function fill(card) {
    const node = rows.nodes.get(card.name);
    const free = node.gpus.reduce((sum, gpu) => sum + (gpu.problem === undefined ? 100 - gpu.givenCores : 0), 0) / 100;
    const models = node.kinds.map(({ model }) => model).filter((model) => model !== '');
    const { problem, late, isCordoned } = node;
    const asOf = late?.sinceMs === undefined ? '' : `as of ${moment(late.sinceMs)}`;
    const state =
      problem ??
      (late !== undefined
        ? asOf.slice(0, 'as of 2026-11-22 22:14'.length) || late.why
        : isCordoned
          ? 'cordoned'
          : `${trimmed(free)} ${free === 1 ? 'GPU' : 'GPUs'} free`);
    const attention = isCordoned || problem !== undefined || late !== undefined;
    const title = [problem, late?.why, asOf].filter(Boolean).join(', ') || state;
    card.element.replaceChildren(
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
          h('span', { class: 'name', title: node.name }, node.name),
          h('span', { class: `state${attention ? ' attention' : ''}`, title }, state),
        ),
        h('span', { class: 'quiet model' }, [count(node.gpus.length, 'GPU'), ...models].join(' · ')),
        card.bars,
      ),
    );
    card.isStale = true;
    if (card.isNear) draw(card);
  }

  function textOf(name) {
    const node = rows.nodes.get(name);
    const pods = rows.podsOn(name).map((pod) => `${pod.namespace}/${pod.name}`);
    return [name, ...node.kinds.map(({ model }) => model), ...pods].join(' ').toLowerCase();
  }

  let words = [];

  function place(most = Infinity) {
    const names = [...rows.nodes.keys()].sort(byName).slice(0, most);
    for (const name of cards.keys())
      if (!rows.nodes.has(name)) {
        near.unobserve(cards.get(name).element);
        cards.get(name).element.remove();
        cards.delete(name);
      }
    let before = null;
    for (const name of names) {
      const card = cards.get(name) ?? make(name);
      cards.set(name, card);
      const next = before === null ? list.firstElementChild : before.nextElementSibling;
      if (next !== card.element) list.insertBefore(card.element, next);
      before = card.element;
    }
  }

  function apply() {
    let shown = 0;
    for (const [name, { element }] of cards) {
      element.hidden = words.length > 0 && !matches(words, textOf(name));
      if (!element.hidden) shown += 1;
    }
    return shown;
  }

  place(FIRST);
  let rest = null;
  // The first frame finds which cards are near the window, and the second shows their bars.
  if (rows.nodes.size > FIRST)
    rest = requestAnimationFrame(() => {
      rest = requestAnimationFrame(() => {
        place();
        apply();
      });
    });
  return {
    element: list,
    /** Draws the named nodes anew. */
    change(touched) {
      const isNew = [...touched].some((name) => rows.nodes.has(name) !== cards.has(name));
      for (const name of touched) if (cards.has(name) && rows.nodes.has(name)) fill(cards.get(name));
      if (isNew) place();
    },
    /** Returns the number of nodes that are shown. */
    filter(wanted) {
      words = wanted;
      if (words.length > 0 && cards.size < rows.nodes.size) place();
      return apply();
    },
    close() {
      cancelAnimationFrame(rest);
      near.disconnect();
    },
  };
}
