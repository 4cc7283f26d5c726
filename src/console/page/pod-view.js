import { h } from './dom.js';
import { ago, bytes } from './format.js';
import { explanationView } from './explanation.js';
import { historyView } from './history.js';

/** One pod: what it asked for, where it is, and why it waits. */
export function podView(rows, uid, keepingPlace) {
  const facts = h('div', {});
  let known = rows.pods.get(uid);
  const explanation = explanationView(rows, () => uid, keepingPlace);
  const past = historyView(rows, 'pod', uid);
  const element = h('div', { class: 'container' }, facts, explanation.element, past.element);
  const draw = () => {
    known = rows.pods.get(uid) ?? known;
    facts.replaceChildren(...picture(rows, rows.pods.get(uid), known));
    explanation.draw();
  };
  draw();
  return {
    ...{ element, draw },
    tables: ['pods', 'claims', 'groups'],
    close() {
      explanation.close();
      past.close();
    },
  };
}

/** `known`: the pod when it was seen last, if this page has seen it. */
function picture(rows, pod, known) {
  const isWaiting = pod?.state === 'waiting' || pod?.state === 'refused';
  const back = h(
    'p',
    { class: 'back' },
    h('a', { href: isWaiting ? '#/waiting' : '#/pods' }, isWaiting ? '← all waiting pods' : '← all pods'),
  );
  if (pod === undefined)
    return [
      back,
      h('h2', {}, 'This pod is gone'),
      ...(known === undefined
        ? [h('p', { class: 'quiet' }, 'It ended, or it is in a namespace that you may not see.')]
        : [
            h(
              'p',
              {},
              `It was ${known.namespace}/${known.name}`,
              known.node === undefined ? '' : ` on ${known.node}`,
              '.',
            ),
            h(
              'p',
              { class: 'quiet' },
              'What agents remember of it: ',
              h('code', {}, `kubectl gpu describe ${known.name} -n ${known.namespace}`),
              '. Its GPU-hours: ',
              h(
                'a',
                { href: `#/usage/pod/24h?filter=${encodeURIComponent(`${known.namespace}/${known.name}`)}` },
                'Usage',
              ),
              '.',
            ),
          ]),
    ];
  const { namespace, name, node, nominatedNode, state, workload, priority, why, slices, group, foreign = [] } = pod;
  const claims = rows.claimsOfPod(pod);
  return [
    back,
    h(
      'header',
      { class: `title ${rows.markOf(pod)}` },
      h('span', { class: 'swatch', 'aria-hidden': true }),
      h('div', {}, h('h2', {}, name), h('p', { class: 'quiet' }, namespace)),
    ),
    why === undefined || state === 'waiting'
      ? null
      : h('ul', { class: 'problems', 'aria-label': 'Why it does not run' }, h('li', {}, why)),
    h(
      'dl',
      { class: 'facts' },
      fact('State', stateText(pod)),
      fact('Node', node === undefined ? 'none yet' : nodeLink(node)),
      ...(nominatedNode === undefined ? [] : [fact('Room is kept on', nodeLink(nominatedNode))]),
      ...(workload === undefined ? [] : [fact('Workload', workload)]),
      fact('Priority', String(priority)),
      ...(group === undefined ? [] : [fact('Quota group', group)]),
      ...(foreign.length === 0 ? [] : [fact('Asks for', foreign.join(', '))]),
      ...(claims.length === 0 ? [] : [fact('Resource claims', claims.map(claimLink))]),
    ),
    slices.length === 0
      ? null
      : h(
          'section',
          {},
          h('h3', {}, node === undefined ? 'Asks for' : 'Slices'),
          h(
            'ul',
            { class: 'plain-list' },
            joined(slices).map(({ container, claim, gpu, cores, memoryBytes }) =>
              h(
                'li',
                {},
                `${claim === undefined ? container : `claim ${claim}`}: ${cores} cores, ${memoryBytes === 0 ? 'all memory' : bytes(memoryBytes)}`,
                h('span', { class: 'quiet' }, gpu === null ? '' : ` on GPU ${gpu}`),
              ),
            ),
          ),
        ),
  ].filter((part) => part !== null);
}

function stateText({ state, sinceMs }) {
  if (sinceMs === undefined) return state;
  const since = ago(sinceMs, Date.now());
  return state === 'refused' || since === 'just now'
    ? `${state}, ${since}`
    : `${state} for ${since.replace(' ago', '')}`;
}

/** Slices without a GPU yet are one line for each container. */
function joined(slices) {
  const lines = [];
  for (const slice of slices) {
    const known = lines.find(
      ({ container, claim, gpu }) => gpu === null && container === slice.container && claim === slice.claim,
    );
    if (slice.gpu !== null || known === undefined) lines.push({ ...slice });
    else {
      known.cores += slice.cores;
      known.memoryBytes += slice.memoryBytes;
    }
  }
  return lines;
}

function nodeLink(node) {
  return h('a', { href: `#/node/${encodeURIComponent(node)}`, 'data-key': `node/${node}` }, node);
}

/** A claim that this reader may not see, or of another driver, is a name without a link. */
function claimLink({ name, uid }) {
  return h(
    'span',
    { class: 'listed' },
    uid === undefined ? name : h('a', { href: `#/claim/${uid}`, 'data-key': `claim/${uid}` }, name),
  );
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}
