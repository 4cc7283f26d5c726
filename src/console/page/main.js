import { claimsView, claimView } from './claims-view.js';
import { h, setText } from './dom.js';
import { eventsView } from './events-view.js';
import { bytesOf, count, seconds, trimmed } from './format.js';
import { unhealthy, wholeFree } from './free-gpus.js';
import { historyView } from './history.js';
import { nodeList } from './node-list.js';
import { podTable } from './pod-table.js';
import { podView } from './pod-view.js';
import { nodeView, podOfAllocation } from './node-view.js';
import { quotaView } from './quota-view.js';
import { Rows, wordsOf } from './rows.js';
import { sharesView } from './shares-view.js';
import { shell } from './shell.js';
import { follow } from './stream.js';
import { usageView } from './usage-view.js';
import { waitingView } from './waiting-view.js';

const rows = new Rows();
const { main, filter, connected, askToken, keepingPlace } = shell({
  stops: 'a.node, a.pod, a.slice, a.branch, summary',
  escape() {
    if (route().name !== '') location.hash = '#/';
  },
  filtered() {
    writeFilter();
    view?.filter?.();
  },
});
const tabs = document.getElementById('tabs');

let view = null;
let known = false;
/** When the console spoke last. */
let heardMs = 0;

function route() {
  const [path = '', query] = location.hash.replace(/^#\/?/u, '').split('?');
  const [name = '', ...rest] = path.split('/');
  return { path, name, argument: decode(rest.join('/')), filter: new window.URLSearchParams(query).get('filter') };
}

/** The filter is a part of the address, so that it survives a reload and can be sent to others. */
function writeFilter() {
  const { path } = route();
  const query = filter.value === '' ? '' : `?${new window.URLSearchParams({ filter: filter.value })}`;
  const hash = `#/${path}${query}`;
  if (location.hash !== hash && (query !== '' || location.hash.includes('?')))
    window.history.replaceState(null, '', hash);
}

function readFilter() {
  const { filter: written } = route();
  if (written === null) writeFilter();
  else filter.value = written;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The tabs, in their order: the table that each shows, and how many rows; null without a number. */
const TABS = [
  { name: '', title: 'Nodes', table: 'nodes', count: () => rows.nodes.size },
  { name: 'pods', title: 'Pods', table: 'pods', count: () => rows.pods.size },
  { name: 'waiting', title: 'Waiting', table: 'pods', count: () => rows.waiting().length },
  { name: 'claims', title: 'Claims', table: 'claims', count: () => rows.claims.size },
  { name: 'quota', title: 'Quota', table: 'groups', count: () => rows.groups.size },
  { name: 'shares', title: 'Fair shares', table: 'shares', count: () => rows.shares.size },
  { name: 'usage', title: 'Usage', table: 'pods', count: () => null },
  { name: 'events', title: 'Events', table: 'events', count: () => rows.events.size },
];

function drawTabs() {
  const { name } = route();
  tabs.replaceChildren(
    ...TABS.filter(({ table }) => rows.absenceOf(table) === null)
      .map((tab) => ({ ...tab, number: tab.count() }))
      .map(({ name: target, title, number }) =>
        h(
          'a',
          { href: `#/${target}`, 'aria-current': target === name ? 'page' : null, 'data-key': `tab/${target}` },
          title,
          number === null ? null : h('span', { class: 'quiet' }, ` ${number.toLocaleString('en')}`),
        ),
      ),
  );
}

function show() {
  if (!known) return;
  view?.close?.();
  const { name, argument } = route();
  document.body.dataset.view = name === '' ? 'nodes' : name;
  const [make, table] = Object.hasOwn(VIEWS, name) ? VIEWS[name] : VIEWS[''];
  const absence = rows.absenceOf(table);
  view = absence === null || name === '' ? make(argument) : absentView(absence);
  main.replaceChildren(view.element);
  view.filter?.();
  drawTabs();
  tabs.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

/** Views by the first part of the address, each with the table without which it shows nothing. */
const VIEWS = {
  '': [() => clusterView(), 'nodes'],
  pods: [() => tableView(() => [...rows.pods.values()], {}), 'pods'],
  waiting: [() => drawn(waitingView(rows, () => filter.value)), 'pods'],
  node: [(name) => nodeView(rows, name, () => filter.value, keepingPlace), 'nodes'],
  container: [(id) => drawn(podView(rows, podOfAllocation(id), keepingPlace)), 'pods'],
  pod: [(uid) => drawn(podView(rows, uid, keepingPlace)), 'pods'],
  claims: [() => drawn(claimsView(rows, () => filter.value)), 'claims'],
  claim: [(uid) => drawn(claimView(rows, uid, keepingPlace)), 'claims'],
  quota: [(group) => drawn(quotaView(rows, group, () => filter.value)), 'groups'],
  shares: [(name) => drawn(sharesView(rows, name, () => filter.value)), 'shares'],
  usage: [(chosen) => drawn(usageView(chosen, () => filter.value)), 'pods'],
  events: [() => drawn(eventsView(rows, () => filter.value)), 'events'],
};

/** A view that is drawn anew when one of its tables or the filter changes. */
function drawn({ element, tables, draw, close }) {
  return {
    element,
    close,
    change(_touched, changed) {
      if (tables.some((table) => changed.has(table))) keepingPlace(draw);
    },
    filter: draw,
  };
}

/** The view for tables that this reader or this cluster does not have. */
function absentView(absence) {
  return { element: h('p', { class: 'quiet notice' }, absence) };
}

/** Views that are hidden, and why: an empty cluster and a missing right look alike otherwise. */
function hiddenViews() {
  const hidden = TABS.map(({ title, table }) => ({ title, absence: rows.absenceOf(table) })).filter(
    ({ absence }) => absence !== null,
  );
  if (hidden.length === 0) return null;
  return h(
    'section',
    {},
    h('h2', {}, 'Not shown'),
    h(
      'ul',
      { class: 'plain-list hidden-views' },
      hidden.map(({ title, absence }) => h('li', { class: 'quiet' }, h('strong', {}, title), `: ${absence}`)),
    ),
  );
}

function clusterView() {
  const figures = h('dl', { class: 'figures' });
  const list = nodeList(rows);
  const past = historyView(rows, 'cluster');
  const nothing = h('p', { class: 'quiet', hidden: true });
  const hidden = h('div', {});
  const draw = () => {
    figures.replaceChildren(...figuresOf());
    hidden.replaceChildren(hiddenViews() ?? '');
  };
  draw();
  return {
    element: h('div', {}, figures, past.element, h('section', {}, h('h2', {}, 'Nodes'), nothing, list.element), hidden),
    change(touched) {
      draw();
      if (touched.size === 0) return;
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
  let [gpus, allocated, free, memory, allocatedMemory, used, told] = [0, 0, 0, 0, 0, 0, 0];
  let sick = 0;
  for (const node of rows.nodes.values()) {
    sick += unhealthy(node.gpus);
    if (node.isReady && !node.isCordoned) free += wholeFree(node.gpus);
    for (const gpu of node.gpus) {
      gpus += 1;
      allocated += gpu.allocatedCores / 100;
      memory += node.kinds[gpu.kind].memoryBytes;
      allocatedMemory += gpu.allocatedMemoryBytes;
      if (gpu.usedPercent === undefined) continue;
      told += 1;
      used += gpu.usedPercent;
    }
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
            'GPUs allocated',
            `${trimmed(allocated)} of ${count(gpus, 'GPU')}`,
            free === 0 ? 'no whole GPU free' : `${count(free, 'whole GPU')} free`,
          ),
          figure('Memory allocated', bytesOf(allocatedMemory, memory), `on ${count(rows.nodes.size, 'node')}`),
          ...(sick === 0
            ? []
            : [
                figure(
                  'Unhealthy',
                  h('a', { class: 'branch', href: '#/?filter=unhealthy', 'data-key': 'unhealthy' }, count(sick, 'GPU')),
                  'no pod gets them',
                ),
              ]),
          ...(told === 0
            ? []
            : [
                figure(
                  'Use of the GPUs',
                  `${Math.round(used / told)} %`,
                  told < gpus ? `of ${count(told, 'GPU')}` : 'at present',
                ),
              ]),
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
  return drawn({ element, tables: ['pods'], draw });
}

const on = {
  rows(data) {
    rows.replace(data);
    known = true;
    keepingPlace(show);
  },
  changes(data) {
    view?.change?.(rows.change(data), new Set(Object.keys(data)));
    drawTabs();
  },
  console(data) {
    const told = JSON.stringify(rows.console?.absent);
    rows.console = data;
    if (known && told !== JSON.stringify(data.absent)) keepingPlace(show);
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
  readFilter();
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

readFilter();
main.replaceChildren(h('p', { class: 'notice quiet' }, 'Asking the console…'));
void follow({
  event: (name, data) => on[name]?.(data),
  lost: () => lost('connection lost, trying again'),
  token: askToken,
});
