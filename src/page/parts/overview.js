import { gpuPanel } from './gpu.js';
import { h, setText } from './dom.js';
import { balancedGrid } from './columns.js';
import { eventLog } from './events.js';
import { matchesContainer, matchesEvent, wordsOf } from './filter.js';
import { bytesOf, count, names, percent, trimmed } from './format.js';
import { quotaTable } from './quota.js';
import { topology } from './topology.js';

/** Width of a GPU's panel at least, in rem. */
const PANEL = { full: 25, compact: 15.5 };

/** The node: figures, topology, GPUs with their containers, quota groups, events. */
export function overview(store, filterText, density = 'full') {
  const { state } = store;
  const gpuOf = new Map(state.gpus.map((gpu) => [gpu.uuid, gpu]));
  // A GPU that was removed from the machine is not shown.
  const entries = store
    .slices()
    .map((entry, at) => ({ ...entry, at, gpu: gpuOf.get(entry.slice.gpuUuid) }))
    .filter(({ gpu }) => gpu !== undefined);

  const figures = figureList(store);
  const picture = topology(store);
  const panels = state.gpus.map((gpu, at) =>
    gpuPanel(
      store,
      gpu,
      at,
      entries.filter((entry) => entry.gpu === gpu),
    ),
  );
  const quota = quotaTable(store);
  const events = eventLog({ opened: store.openedEvents });
  const matching = h('p', { class: 'matching quiet', role: 'status', hidden: true });
  const gpus = h(
    'div',
    { class: `gpus ${density}` },
    panels.map((panel) => panel.element),
  );
  const grid = balancedGrid(gpus, PANEL[density]);

  const element = h(
    'div',
    { class: 'overview' },
    ...problems(state),
    matching,
    figures.element,
    section('Topology', picture.element),
    section('GPUs', gpus),
    quota === null ? '' : section('Quota groups', quota.element),
    store.events === null ? '' : section('Recent events', events.element),
  );

  const happened = (words) =>
    events.show(
      (store.events ?? []).filter((event) => matchesEvent(event, words)),
      words.length === 0 ? 'Nothing has happened since the agent started.' : 'No event matches the filter.',
    );
  const apply = () => {
    const words = wordsOf(filterText());
    for (const panel of panels) panel.filter(words);
    grid.arrange();
    const shown = entries.filter(({ allocation }) => matchesContainer(allocation, words));
    const found = new Set(shown.map(({ allocation }) => allocation.id)).size;
    matching.hidden = words.length === 0;
    setText(
      matching,
      found === 0
        ? 'No container matches the filter.'
        : `Only ${found} of ${count(state.allocations.length, 'container')}, by the filter “${filterText().trim()}”.`,
    );
    figures.show(words.length === 0 ? null : shown);
    quota?.show(shown);
    happened(words);
  };
  apply();
  return {
    element,
    /** It is on the page now, so it has a width. */
    attached: () => grid.arrange(),
    use(sampled) {
      figures.use();
      picture.use();
      quota?.use();
      for (const panel of panels) panel.use(sampled);
    },
    happened: () => happened(wordsOf(filterText())),
    filter: apply,
    close() {
      picture.close();
      grid.close();
    },
  };
}

function section(title, ...content) {
  return h('section', {}, h('h2', {}, title), ...content);
}

/** Problems that need an action. */
function problems({ gpus, driverOutage, notReady, allocations }) {
  const lines = [
    ...(driverOutage === null ? [] : [`The GPU driver does not answer: ${driverOutage}`]),
    ...notReady.map((reason) => `The agent cannot serve pods: ${reason}`),
    ...gpus
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

/** The figures of the node, or of some of its containers. */
function figureList(store) {
  const { gpus, allocations } = store.state;
  const values = {};
  const figure = (key, label) => {
    values[key] = { main: h('dd', {}), small: h('dd', { class: 'quiet' }) };
    return h('div', {}, h('dt', {}, label), values[key].main, values[key].small);
  };
  const element = h(
    'dl',
    { class: 'figures' },
    figure('busy', 'Utilization'),
    figure('allocated', 'Allocated'),
    figure('memory', 'Memory in use'),
    figure('containers', 'Containers'),
  );
  const say = (key, main, small) => {
    setText(values[key].main, main);
    setText(values[key].small, small);
  };
  const sum = (all, of) => all.reduce((total, one) => total + of(one), 0);
  const memoryBytes = sum(gpus, (gpu) => gpu.memoryBytes);
  const totals = {
    allocated: sum(gpus, (gpu) => gpu.allocatedCores) / 100,
    free: gpus.filter((gpu) => gpu.usable && gpu.allocatedCores === 0).length,
    memory: sum(gpus, (gpu) => gpu.allocatedMemoryBytes),
  };
  const podsOf = (some) => new Set(some.flatMap(({ owners }) => owners.map(({ podUid }) => podUid))).size;
  /** The containers whose figures are shown; null: all of the node. */
  let only = null;

  const useNode = () => {
    const known = store.usage.gpus.map(({ usedPercent }) => usedPercent).filter((used) => used !== null);
    say(
      'busy',
      known.length === 0 ? '–' : percent(sum(known, (used) => used) / known.length),
      known.length === 0 ? 'the driver does not say' : `busiest GPU ${percent(Math.max(...known))}`,
    );
    const used = sum(store.usage.gpus, ({ usedMemoryBytes }) => usedMemoryBytes ?? 0);
    say('memory', bytesOf(used, memoryBytes), `${bytesOf(totals.memory, memoryBytes)} allocated`);
  };
  const useSome = () => {
    const used = only.map(({ at }) => store.usage.slices[at]);
    const allocated = sum(only, ({ slice, gpu }) => slice.allocatedMemoryBytes ?? gpu.memoryBytes);
    say('busy', percent(sum(used, ({ usedPercent }) => usedPercent) / gpus.length), 'of all GPUs together');
    say(
      'memory',
      bytesOf(
        sum(used, ({ usedMemoryBytes }) => usedMemoryBytes),
        memoryBytes,
      ),
      `${bytesOf(allocated, memoryBytes)} allocated`,
    );
  };
  const use = () => {
    if (store.usage === null) return;
    if (only === null) useNode();
    else useSome();
  };
  return {
    element,
    use,
    show(entries) {
      only = entries;
      const some = only === null ? allocations : [...new Set(only.map(({ allocation }) => allocation))];
      const allocated = only === null ? totals.allocated : sum(only, ({ slice }) => slice.allocatedCores) / 100;
      const free = totals.free === 0 ? 'no whole GPU free' : `${count(totals.free, 'whole GPU')} free`;
      say(
        'allocated',
        `${trimmed(allocated)} of ${count(gpus.length, 'GPU')}`,
        only === null ? free : `${trimmed(totals.allocated)} with the others`,
      );
      say(
        'containers',
        only === null ? String(some.length) : `${some.length} of ${allocations.length}`,
        `in ${count(podsOf(some), 'pod')}`,
      );
      use();
    },
  };
}
