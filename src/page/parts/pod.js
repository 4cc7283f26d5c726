import { h } from './dom.js';
import { eventLog } from './events.js';
import { names } from './format.js';

/** View of a pod by its name: its containers that are there, and its events, also after its end. */
export function podView(namespace, name, store) {
  const body = h('div', {});
  const log = eventLog({ opened: store.openedEvents });
  const draw = () => {
    const present = store.state.allocations.filter((one) => isOf(names(one), namespace, name));
    body.replaceChildren(
      h('h2', {}, present.length === 0 ? 'This pod is gone' : name),
      h('p', {}, `${namespace}/${name}`, h('span', { class: 'quiet' }, ` on ${store.state.node}`)),
      present.length === 0
        ? h('p', { class: 'quiet' }, 'It ended, or it never had a GPU of this node.')
        : h(
            'ul',
            { class: 'plain-list' },
            present.map((one) =>
              h('li', {}, h('a', { href: `#/container/${encodeURIComponent(one.id)}` }, names(one).container)),
            ),
          ),
    );
    log.show(
      store.events.filter(({ owner }) => owner !== undefined && isOf(owner, namespace, name)),
      'The agent has no event of this pod.',
    );
  };
  draw();
  return {
    element: h(
      'div',
      { class: 'container' },
      h('p', { class: 'back' }, h('a', { href: '#/' }, '← all GPUs')),
      body,
      h('section', {}, h('h3', {}, 'Events'), log.element),
    ),
    use: () => undefined,
    happened: draw,
    changed: draw,
    close: () => undefined,
  };
}

/** The address of that view. */
export function podAddress({ namespace, pod }) {
  return `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`;
}

function isOf(container, namespace, name) {
  return container.namespace === namespace && container.pod === name;
}
