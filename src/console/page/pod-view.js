import { h } from './dom.js';
import { ago, bytes } from './format.js';
import { historyView } from './history.js';

/** One pod: what it asked for, where it is, and why it waits. */
export function podView(rows, uid) {
  const facts = h('div', {});
  const past = historyView(rows, 'pod', uid);
  const element = h('div', { class: 'container' }, facts, past.element);
  const draw = () => facts.replaceChildren(...picture(rows, rows.pods.get(uid)));
  draw();
  return { element, tables: ['pods', 'claims'], draw, close: () => past.close() };
}

function picture(rows, pod) {
  const back = h('p', { class: 'back' }, h('a', { href: '#/pods' }, '← all pods'));
  if (pod === undefined)
    return [
      back,
      h('h2', {}, 'This pod is gone'),
      h('p', { class: 'quiet' }, 'It ended, or it is in a namespace that you may not see.'),
    ];
  const { namespace, name, node, nominatedNode, state, sinceMs, workload, priority, why, slices } = pod;
  const claims = rows.claimsOfPod(pod);
  return [
    back,
    h(
      'header',
      { class: `title ${rows.markOf(pod)}` },
      h('span', { class: 'swatch', 'aria-hidden': true }),
      h('div', {}, h('h2', {}, name), h('p', { class: 'quiet' }, namespace)),
    ),
    why === undefined ? null : h('ul', { class: 'problems', 'aria-label': 'Why it does not run' }, h('li', {}, why)),
    h(
      'dl',
      { class: 'facts' },
      fact('State', `${state}${sinceMs === undefined ? '' : `, ${ago(sinceMs, Date.now())}`}`),
      fact('Node', node === undefined ? 'none yet' : nodeLink(node)),
      ...(nominatedNode === undefined ? [] : [fact('Room is kept on', nodeLink(nominatedNode))]),
      ...(workload === undefined ? [] : [fact('Workload', workload)]),
      fact('Priority', String(priority)),
      ...(claims.length === 0 ? [] : [fact('Resource claims', claims.map(claimLink))]),
    ),
    h(
      'section',
      {},
      h('h3', {}, 'Slices'),
      h(
        'ul',
        { class: 'plain-list' },
        slices.map(({ container, claim, gpu, cores, memoryBytes }) =>
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
