import { h } from './dom.js';
import { moment } from './format.js';
import { gpuBars } from './gpu-bars.js';
import { historyView } from './history.js';
import { overview } from './overview.js';
import { podTable } from './pod-table.js';
import { wordsOf } from './rows.js';
import { Store } from './store.js';
import { read } from './stream.js';

const PERIOD_MS = 2000;

/** UIDs of pods by the allocations of the nodes that were shown. */
const podsByAllocation = new Map();

/** The pod of an allocation that a node's view leads to. */
export function podOfAllocation(id) {
  return podsByAllocation.get(id) ?? '';
}

/**
 * One node: as its own page shows it, if its agent answers; else what the cluster knows of it. The agent is asked on
 * demand, through the API server.
 */
export function nodeView(rows, name, filterText, keepingPlace) {
  const store = new Store();
  // The agent's document has none; the console has a view of all events.
  store.events = null;
  const note = h('p', { class: 'quiet agent' }, 'Asking the agent of this node…');
  const ownPage = h('p', { class: 'own-page quiet', hidden: true });
  const body = h('div', {});
  const past = historyView(rows, 'node', name);
  const element = h(
    'div',
    {},
    h('p', { class: 'back' }, h('a', { href: '#/' }, '← all nodes')),
    h('h2', { class: 'node-title' }, name),
    ownPage,
    note,
    body,
    past.element,
  );
  let picture = null;
  let told = '';
  let timer = null;
  let closed = false;

  function drawKnown() {
    const node = rows.nodes.get(name);
    body.classList.toggle('late', node?.late !== undefined);
    if (node === undefined) {
      note.textContent = 'No node of this name has GPUs of gpu-manager.';
      body.replaceChildren();
      return;
    }
    body.replaceChildren(
      h('div', { class: 'wide-bars' }, gpuBars(rows, node)),
      h(
        'section',
        {},
        h('h2', {}, 'Pods'),
        podTable(rows, rows.podsOn(name), wordsOf(filterText()), { nothing: 'No pod on this node uses a GPU.' }),
      ),
    );
  }

  function drawAgent(document) {
    const { atMs, ...state } = document;
    const { driverOutage, notReady } = state;
    const text = JSON.stringify({
      ...{ driverOutage, notReady },
      gpus: state.gpus.map(({ uuid, usable, health, allocatedCores, allocatedMemoryBytes }) => ({
        ...{ uuid, usable, health, allocatedCores, allocatedMemoryBytes },
      })),
      allocations: state.allocations.map(({ id, owners, findings }) => ({ id, owners, findings })),
    });
    store.state = state;
    const sampled = store.use(usageOf(atMs, state));
    for (const { id, owners } of state.allocations) podsByAllocation.set(id, owners.at(-1)?.podUid ?? '');
    if (picture === null || text !== told) {
      told = text;
      keepingPlace(() => {
        picture?.close();
        picture = overview(store, filterText);
        body.replaceChildren(picture.element);
      });
      picture.use(true);
    } else picture.use(sampled);
    body.classList.remove('late');
    say(`Figures of the agent, gpu-manager ${state.version}.`);
  }

  /** The last data stay, in grey; before the first answer, the view shows data of the cluster. */
  function drawSilence(reason) {
    if (picture === null) keepingPlace(drawKnown);
    else body.classList.add('late');
    say(
      `The agent of this node does not answer: ${reason}.`,
      picture === null ? rows.nodes.get(name)?.late?.sinceMs : store.usage.at,
    );
  }

  function say(text, asOfMs = null) {
    note.textContent = asOfMs === null ? text : `${text} Figures as of ${moment(asOfMs)}.`;
    note.className = `agent ${asOfMs === null ? 'quiet' : 'as-of'}`;
  }

  async function ask() {
    try {
      const answer = await read(`api/node?name=${encodeURIComponent(name)}`);
      if (closed) return;
      ownPage.hidden = answer?.ok !== true;
      if (answer?.ok === true) ownPage.replaceChildren(...wayToPage(answer.agent));
      if (answer?.ok === true) drawAgent(answer.document);
      else if (answer !== null) drawSilence(answer.reason);
    } catch {
      // The line at the top says that the console is away; what was seen last stays.
    }
    if (!closed) timer = setTimeout(ask, PERIOD_MS);
  }

  drawKnown();
  void ask();
  return {
    element,
    change(touched) {
      if (picture === null && touched.has(name)) keepingPlace(drawKnown);
    },
    filter() {
      if (picture === null) drawKnown();
      else picture.filter();
    },
    close() {
      closed = true;
      past.close();
      clearTimeout(timer);
      picture?.close();
    },
  };
}

/**
 * How to open the node's own page. There is no link: behind the API server's proxy the page would have the origin of
 * the API server, and a node that an attacker controls could act there as its reader.
 */
function wayToPage({ namespace, name, port, scheme }) {
  return [
    'Its own page: ',
    h('code', {}, `kubectl --namespace ${namespace} port-forward pod/${name} ${port}`),
    `, then open ${scheme}://localhost:${port}/`,
  ];
}

/** The part of an agent's document that changes with every sample, as its own page gets it. */
function usageOf(at, { gpus, allocations }) {
  return {
    at,
    gpus: gpus.map(({ usedPercent, usedMemoryBytes, temperatureCelsius, powerWatts, foreignPids }) => ({
      usedPercent,
      usedMemoryBytes,
      temperatureCelsius,
      powerWatts,
      foreignProcesses: foreignPids.length,
    })),
    slices: allocations.flatMap(({ slices }) =>
      slices.map(({ usedPercent, usedMemoryBytes, counters }) => ({
        usedPercent,
        usedMemoryBytes,
        throttledSeconds: counters?.throttledSeconds ?? 0,
      })),
    ),
  };
}
