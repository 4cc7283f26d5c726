import { h } from './dom.js';
import { explanationView } from './explanation.js';
import { ago, bytes, count } from './format.js';
import { paged } from './paged.js';
import { heads } from './pod-table.js';
import { byName, matches, wordsOf } from './rows.js';

/** Resource claims with GPUs: what they ask for, what they got, who uses them, and why they wait. */
export function claimsView(rows, filterText) {
  const element = h('section', {});
  const draw = () => element.replaceChildren(h('h2', {}, 'Resource claims'), list(rows, wordsOf(filterText())));
  draw();
  return { element, tables: ['claims'], draw };
}

function list(rows, words) {
  const found = [...rows.claims.values()]
    .filter((claim) => matches(words, textOf(claim)))
    .sort((a, b) => byName(a.namespace, b.namespace) || byName(a.name, b.name));
  if (found.length === 0)
    return h(
      'p',
      { class: 'quiet' },
      words.length > 0 ? 'No claim matches the filter.' : 'No resource claim asks for GPUs of gpu-manager.',
    );
  const body = h('ul', { class: 'pods why' });
  return h('div', {}, heads('Claim', 'Has or asks for', 'Where', 'State'), body, paged(body, found, row));
}

function textOf({ namespace, name, devices, pods }) {
  return [`${namespace}/${name}`, ...pods, ...devices.map(({ node }) => node ?? '')].join(' ').toLowerCase();
}

function row(claim) {
  const { uid, namespace, name, state, createdAtMs, why, pods } = claim;
  const where = placesOf(claim).join(', ');
  return h(
    'li',
    {},
    h(
      'a',
      { class: 'pod claim', href: `#/claim/${uid}`, 'data-key': `claim/${uid}` },
      h('span', {}),
      h(
        'span',
        { class: 'name', title: `${namespace}/${name}` },
        h('span', { class: 'pod-name' }, name),
        h('span', { class: 'quiet' }, [namespace, usersOf(pods)].filter((part) => part !== '').join(' · ')),
      ),
      h('span', { class: 'asked' }, amountsOf(claim)),
      h('span', { class: 'where quiet', title: where }, where),
      h(
        'span',
        { class: `state ${state === 'reserved' ? 'running' : state}` },
        state,
        createdAtMs === undefined
          ? null
          : h('span', { class: 'quiet' }, ` ${ago(createdAtMs, Date.now()).replace(' ago', '')}`),
      ),
      why === undefined ? null : h('span', { class: 'reason' }, why),
    ),
  );
}

function usersOf(pods) {
  return pods.length > 2 ? `${count(pods.length, 'pod')}` : pods.join(', ');
}

/** Cores and memory: of its devices, or what it asks for while it has none. */
function amountsOf({ devices, asks }) {
  const all = devices.length === 0 ? [asks] : devices;
  const cores = all.reduce((sum, one) => sum + one.cores, 0);
  const memory = all.reduce((sum, one) => sum + one.memoryBytes, 0);
  return [...(cores === 0 ? [] : [`${cores} cores`]), ...(memory === 0 ? [] : [bytes(memory)])].join(', ');
}

/** Node and GPUs of its devices. */
function placesOf({ devices }) {
  const byNode = Map.groupBy(devices, ({ node }) => node ?? 'unknown node');
  return [...byNode].map(([node, of]) => `${node} · ${of.map(gpuOf).join(', ')}`);
}

function gpuOf({ gpu, device }) {
  return gpu === null ? device : `GPU ${gpu}`;
}

/** One claim. */
export function claimView(rows, uid, keepingPlace) {
  const facts = h('div', {});
  const explanation = explanationView(rows, () => waitingUser(rows, uid), keepingPlace);
  const draw = () => {
    facts.replaceChildren(...picture(rows, rows.claims.get(uid)));
    explanation.draw();
  };
  draw();
  return {
    ...{ element: h('div', { class: 'container' }, facts, explanation.element), draw },
    tables: ['claims', 'pods', 'groups'],
    close: () => explanation.close(),
  };
}

/** The pod for which the scheduler will allocate a claim: the claim waits as long as this pod does. */
function waitingUser(rows, uid) {
  const claim = rows.claims.get(uid);
  if (claim?.state !== 'waiting') return undefined;
  return rows.podsOfClaim(claim).find(({ state }) => state === 'waiting')?.uid;
}

function picture(rows, claim) {
  const back = h('p', { class: 'back' }, h('a', { href: '#/claims' }, '← all claims'));
  if (claim === undefined)
    return [
      back,
      h('h2', {}, 'This claim is gone'),
      h('p', { class: 'quiet' }, 'It was deleted, or it is in a namespace whose claims you may not see.'),
    ];
  const { namespace, name, state, createdAtMs, why, asks, devices, pods } = claim;
  const users = rows.podsOfClaim(claim);
  return [
    back,
    h('header', { class: 'title' }, h('div', {}, h('h2', {}, name), h('p', { class: 'quiet' }, namespace))),
    why === undefined ? null : h('ul', { class: 'problems', 'aria-label': 'Why it waits' }, h('li', {}, why)),
    h(
      'dl',
      { class: 'facts' },
      fact('State', state === 'allocated' ? 'allocated, and no pod uses it' : state),
      fact('Device classes', asks.classes.join(', ') || 'none'),
      fact('Asks for', amountsOf({ devices: [], asks }) || 'whole devices'),
      ...(createdAtMs === undefined ? [] : [fact('Created', ago(createdAtMs, Date.now()))]),
    ),
    section(
      'Devices',
      devices.map((device) => h('li', {}, ...deviceLine(device))),
      'It has no device yet.',
    ),
    section(
      'Pods',
      [
        ...users.map((pod) =>
          h('li', {}, h('a', { class: 'branch', href: `#/pod/${pod.uid}` }, pod.name), ` ${pod.state}`),
        ),
        ...pods.filter((pod) => users.every((user) => user.name !== pod)).map((pod) => h('li', {}, pod)),
      ],
      'No pod uses it.',
    ),
  ].filter((part) => part !== null);
}

function deviceLine(device) {
  const { request, node, cores, memoryBytes } = device;
  const memory = memoryBytes === 0 ? 'all memory' : bytes(memoryBytes);
  return [
    `${request}: ${cores} cores, ${memory} of ${gpuOf(device)} on `,
    node === undefined
      ? 'an unknown node'
      : h('a', { class: 'branch', href: `#/node/${encodeURIComponent(node)}`, 'data-key': `node/${node}` }, node),
  ];
}

function section(title, lines, nothing) {
  return h(
    'section',
    {},
    h('h3', {}, title),
    lines.length === 0 ? h('p', { class: 'quiet' }, nothing) : h('ul', { class: 'plain-list' }, lines),
  );
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}
