import { h } from './dom.js';
import { ago, bytes } from './format.js';
import { historyView } from './history.js';
import { read } from './stream.js';

/** One pod: what it asked for, where it is, and why it waits. Its containers link to the page of its node. */
export function podView(rows, uid) {
  const facts = h('div', {});
  const past = historyView(rows, 'pod', uid);
  const element = h('div', { class: 'container' }, facts, past.element);
  /** By container: its view on the page of the node. */
  let pages = new Map();
  const draw = () => facts.replaceChildren(...picture(rows, rows.pods.get(uid), pages));
  draw();
  const node = rows.pods.get(uid)?.node;
  if (node !== undefined && rows.tables.has('nodes'))
    void pagesOf(rows, node, uid).then((found) => {
      pages = found;
      draw();
    });
  return { element, change: draw, close: () => past.close() };
}

/** Views of a pod's containers on the page of their node; none if its agent does not answer. */
async function pagesOf(rows, node, uid) {
  const answer = await read(`api/node?name=${encodeURIComponent(node)}`).catch(() => null);
  if (answer?.ok !== true) return new Map();
  return new Map(
    answer.document.allocations.flatMap(({ id, owners }) =>
      owners
        .filter(({ podUid }) => podUid === uid)
        .map(({ container }) => [container, `${rows.apiUrl(answer.page)}#/container/${encodeURIComponent(id)}`]),
    ),
  );
}

function picture(rows, pod, pages) {
  const back = h('p', { class: 'back' }, h('a', { href: '#/pods' }, '← all pods'));
  if (pod === undefined)
    return [
      back,
      h('h2', {}, 'This pod is gone'),
      h('p', { class: 'quiet' }, 'It ended, or it is in a namespace that you may not see.'),
    ];
  const { namespace, name, node, state, sinceMs, workload, priority, why, slices } = pod;
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
      fact('Node', node === undefined ? 'none yet' : h('a', { href: `#/node/${encodeURIComponent(node)}` }, node)),
      ...(workload === undefined ? [] : [fact('Workload', workload)]),
      fact('Priority', String(priority)),
    ),
    h(
      'section',
      {},
      h('h3', {}, 'Slices'),
      h(
        'ul',
        { class: 'plain-list' },
        slices.map(({ container, gpu, cores, memoryBytes }) =>
          h(
            'li',
            {},
            `${container}: ${cores} cores, ${memoryBytes === 0 ? 'all memory' : bytes(memoryBytes)}`,
            h('span', { class: 'quiet' }, gpu === null ? '' : ` on GPU ${gpu}`),
            pages.has(container)
              ? h(
                  'a',
                  { class: 'own-page', href: pages.get(container), target: '_blank', rel: 'noopener' },
                  'on the page of its node',
                )
              : null,
          ),
        ),
      ),
    ),
  ].filter((part) => part !== null);
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}
