import { cardPanel } from './gpu.js';
import { h, setText } from './dom.js';
import { eventList } from './events.js';
import { bytesOf, count, names, percent, trimmed } from './format.js';
import { topology } from './topology.js';

/** The node: figures, topology, GPUs with their containers, events. */
export function overview(store, filterText) {
  const { state } = store;
  const byGpu = new Map(state.cards.map((card) => [card.uuid, []]));
  store.slices().forEach((entry, at) => byGpu.get(entry.slice.gpuUuid)?.push({ ...entry, at }));

  const figures = figureList(store);
  const picture = topology(store);
  const panels = state.cards.map((card, at) => cardPanel(store, card, at, byGpu.get(card.uuid)));
  const events = h('div', {}, eventList(store.events));
  const nothing = h('p', { class: 'quiet', hidden: true }, 'No container matches the filter.');

  const element = h(
    'div',
    { class: 'overview' },
    ...problems(state),
    figures.element,
    section('Topology', picture.element),
    section(
      'GPUs',
      nothing,
      h(
        'div',
        { class: 'cards' },
        panels.map((panel) => panel.element),
      ),
    ),
    section('Recent events', events),
  );

  const apply = () => {
    const words = filterText()
      .toLowerCase()
      .split(/\s+/u)
      .filter((word) => word !== '');
    const shown = panels.map((panel) => panel.filter(words));
    nothing.hidden = words.length === 0 || shown.some((some) => some);
  };
  apply();
  return {
    element,
    use(sampled) {
      figures.use();
      picture.use();
      for (const panel of panels) panel.use(sampled);
    },
    happened: () => events.replaceChildren(eventList(store.events)),
    filter: apply,
    close: () => picture.close(),
  };
}

function section(title, ...content) {
  return h('section', {}, h('h2', {}, title), ...content);
}

/** What somebody should do something about. */
function problems({ cards, driverOutage, notReady, allocations }) {
  const lines = [
    ...(driverOutage === null ? [] : [`The GPU driver does not answer: ${driverOutage}`]),
    ...notReady.map((reason) => `The agent cannot serve pods: ${reason}`),
    ...cards
      .filter(({ health }) => health.status !== 'healthy')
      .map(({ index, health }) => `GPU ${index}: ${health.reason ?? health.status}`),
    ...allocations.flatMap((allocation) =>
      allocation.findings.filter(({ serious }) => serious).map(({ message }) => `${names(allocation).pod}: ${message}`),
    ),
  ];
  return lines.length === 0
    ? []
    : [
        h(
          'ul',
          { class: 'problems', 'aria-label': 'Needs attention' },
          lines.map((line) => h('li', {}, line)),
        ),
      ];
}

function figureList(store) {
  const { state } = store;
  const values = {};
  const figure = (key, label) => {
    values[key] = { main: h('dd', {}), small: h('dd', { class: 'quiet' }) };
    return h('div', {}, h('dt', {}, label), values[key].main, values[key].small);
  };
  const element = h(
    'dl',
    { class: 'figures' },
    figure('busy', 'Busy'),
    figure('given', 'Given'),
    figure('memory', 'Memory in use'),
    figure('containers', 'Containers'),
  );
  const { cards, allocations } = state;
  const given = cards.reduce((sum, card) => sum + card.givenCores, 0) / 100;
  const free = cards.filter((card) => card.usable && card.givenCores === 0).length;
  const memory = cards.reduce((sum, card) => sum + card.memoryBytes, 0);
  const givenMemory = cards.reduce((sum, card) => sum + card.givenMemoryBytes, 0);
  const pods = new Set(allocations.flatMap(({ owners }) => owners.map(({ podUid }) => podUid)));
  setText(values.given.main, `${trimmed(given)} of ${count(cards.length, 'GPU')}`);
  setText(values.given.small, free === 0 ? 'no whole GPU free' : `${count(free, 'whole GPU')} free`);
  setText(values.memory.small, `${bytesOf(givenMemory, memory)} given`);
  setText(values.containers.main, String(allocations.length));
  setText(values.containers.small, `in ${count(pods.size, 'pod')}`);
  return {
    element,
    use() {
      const known = store.usage.cards.map(({ usedPercent }) => usedPercent).filter((used) => used !== null);
      setText(
        values.busy.main,
        known.length === 0 ? '–' : percent(known.reduce((sum, used) => sum + used, 0) / known.length),
      );
      setText(
        values.busy.small,
        known.length === 0 ? 'the driver does not say' : `busiest GPU ${percent(Math.max(...known))}`,
      );
      setText(
        values.memory.main,
        bytesOf(
          store.usage.cards.reduce((sum, { usedMemoryBytes }) => sum + (usedMemoryBytes ?? 0), 0),
          memory,
        ),
      );
    },
  };
}
