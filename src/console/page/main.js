import { h, setText } from './dom.js';
import { bytesOf, count, seconds, trimmed } from './format.js';
import { historyView } from './history.js';
import { nodeList } from './node-list.js';
import { podTable } from './pod-table.js';
import { podView } from './pod-view.js';
import { nodeView, podOfAllocation } from './node-view.js';
import { Rows, wordsOf } from './rows.js';
import { shell } from './shell.js';
import { follow } from './stream.js';

const rows = new Rows();
const { main, filter, connected, askToken, keepingPlace } = shell({
  stops: 'a.node, a.pod, a.slice',
  escape() {
    if (route().name !== '') location.hash = '#/';
  },
  filtered: () => view?.filter?.(),
});
const tabs = document.getElementById('tabs');

let view = null;
let known = false;
/** When the console spoke last. */
let heardMs = 0;

function route() {
  const [name = '', ...rest] = location.hash.replace(/^#\/?/u, '').split('/');
  return { name, argument: decode(rest.join('/')) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The tabs, in their order: what each shows, and how much of it there is. */
const TABS = [
  { name: '', title: 'Nodes', count: () => (rows.tables.has('nodes') ? rows.nodes.size : null) },
  { name: 'pods', title: 'Pods', count: () => rows.pods.size },
  { name: 'waiting', title: 'Waiting', count: () => rows.waiting().length },
];

function drawTabs() {
  const { name } = route();
  tabs.replaceChildren(
    ...TABS.map((tab) => ({ ...tab, number: tab.count() }))
      .filter(({ number }) => number !== null)
      .map(({ name: target, title, number }) =>
        h(
          'a',
          { href: `#/${target}`, 'aria-current': target === name ? 'page' : null, 'data-key': `tab/${target}` },
          title,
          h('span', { class: 'quiet' }, ` ${number.toLocaleString('en')}`),
        ),
      ),
  );
}

function show() {
  if (!known) return;
  view?.close?.();
  const { name, argument } = route();
  document.body.dataset.view = name === '' ? 'nodes' : name;
  const make = Object.hasOwn(VIEWS, name) ? VIEWS[name] : VIEWS[''];
  view = make(argument);
  main.replaceChildren(view.element);
  view.filter?.();
  drawTabs();
}

const VIEWS = {
  '': () => clusterView(),
  pods: () => tableView(() => [...rows.pods.values()], {}),
  waiting: () => tableView(() => rows.waiting(), { showsWhy: true, nothing: 'No pod waits for a GPU.' }),
  node: (name) => nodeView(rows, name, () => filter.value, keepingPlace),
  container: (id) => podView(rows, podOfAllocation(id)),
  pod: (uid) => podView(rows, uid),
};

function clusterView() {
  const figures = h('dl', { class: 'figures' });
  const list = nodeList(rows);
  const past = historyView(rows, 'cluster');
  const nothing = h('p', { class: 'quiet', hidden: true });
  const draw = () => figures.replaceChildren(...figuresOf());
  draw();
  return {
    element: h('div', {}, figures, past.element, h('section', {}, h('h2', {}, 'Nodes'), nothing, list.element)),
    change(touched) {
      draw();
      list.change(touched);
      this.filter();
    },
    filter() {
      const words = wordsOf(filter.value);
      const shown = list.filter(words);
      nothing.hidden = shown > 0;
      setText(
        nothing,
        words.length > 0
          ? 'No node, and no pod on a node, matches the filter.'
          : 'No node of the cluster has GPUs of gpu-manager.',
      );
    },
    close() {
      list.close();
      past.close();
    },
  };
}

function figuresOf() {
  let [gpus, given, free, memory, givenMemory] = [0, 0, 0, 0, 0];
  for (const node of rows.nodes.values())
    for (const gpu of node.gpus) {
      gpus += 1;
      given += gpu.givenCores / 100;
      if (gpu.givenCores === 0 && gpu.problem === undefined && node.isReady && !node.isCordoned) free += 1;
      memory += node.kinds[gpu.kind].memoryBytes;
      givenMemory += gpu.givenMemoryBytes;
    }
  const pods = [...rows.pods.values()];
  const running = pods.filter(({ state }) => state === 'running').length;
  const waiting = rows.waiting();
  const figure = (label, value, small) =>
    h('div', {}, h('dt', {}, label), h('dd', {}, value), h('dd', { class: 'quiet' }, small));
  const refused = waiting.filter(({ state }) => state === 'refused').length;
  return [
    ...(rows.tables.has('nodes')
      ? [
          figure(
            'Given',
            `${trimmed(given)} of ${count(gpus, 'GPU')}`,
            free === 0 ? 'no whole GPU free' : `${count(free, 'whole GPU')} free`,
          ),
          figure('Memory given', bytesOf(givenMemory, memory), `on ${count(rows.nodes.size, 'node')}`),
        ]
      : []),
    figure('Pods', pods.length.toLocaleString('en'), `${running.toLocaleString('en')} running`),
    figure(
      'Waiting',
      (waiting.length - refused).toLocaleString('en'),
      refused === 0 ? 'none was refused' : `${refused} refused by kubelets`,
    ),
  ];
}

function tableView(pods, options) {
  const element = h('section', {});
  const draw = () => element.replaceChildren(podTable(rows, pods(), wordsOf(filter.value), options));
  draw();
  return { element, change: () => keepingPlace(draw), filter: draw };
}

const on = {
  rows(data) {
    rows.replace(data);
    known = true;
    keepingPlace(show);
  },
  changes(data) {
    view?.change?.(rows.change(data));
    drawTabs();
  },
  console(data) {
    rows.console = data;
    setText(document.getElementById('node'), data.cluster);
    setText(document.getElementById('versions'), `gpu-manager ${data.version}`);
    document.title = `${data.cluster} – GPUs`;
    heardMs = Date.now();
    const silentMs = Math.max(0, ...Object.values(data.late));
    if (silentMs === 0) connected('live', 'live');
    else
      connected(`API server silent for ${seconds(Math.round(silentMs / 1000))}`, 'lost', {
        why: 'The API server does not answer the console.',
        ms: heardMs - silentMs,
      });
  },
  busy: () => lost('too many readers, trying again'),
};

function lost(text) {
  connected(text, 'lost', known ? { why: 'The console does not answer.', ms: heardMs } : null);
}

window.addEventListener('hashchange', () => {
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

main.replaceChildren(h('p', { class: 'notice quiet' }, 'Asking the console…'));
void follow({
  event: (name, data) => on[name]?.(data),
  lost: () => lost('connection lost, trying again'),
  token: askToken,
});
