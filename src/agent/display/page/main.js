import { containerView } from './container.js';
import { h, setText } from './dom.js';
import { overview } from './overview.js';
import { shell } from './shell.js';
import { follow } from './stream.js';
import { Store } from './store.js';

const store = new Store();
const { main, filter, connected, askToken, keepingPlace } = shell({
  stops: 'a.slice',
  escape() {
    if (route().name !== 'node') location.hash = '#/';
  },
  filtered: () => view?.filter?.(),
});

/** What is shown: the node, or one container. */
let view = null;

function route() {
  const id = /^#\/container\/([0-9a-f]+)$/u.exec(location.hash)?.[1];
  return id === undefined ? { name: 'node' } : { name: 'container', id };
}

/** Shows what the address says, anew. */
function show() {
  if (store.state === null) return;
  view?.close();
  const { name, id } = route();
  document.body.dataset.view = name;
  view = name === 'container' ? containerView(id, store) : overview(store, () => filter.value);
  main.replaceChildren(view.element);
  view.use(true);
}

function title({ node, version, driverVersion }) {
  setText(document.getElementById('node'), node);
  setText(
    document.getElementById('versions'),
    [`gpu-manager ${version}`, driverVersion === null ? null : `driver ${driverVersion}`]
      .filter((part) => part !== null)
      .join(' · '),
  );
  document.title = `${node} – GPUs`;
}

const on = {
  hello: (data) => store.hello(data),
  state(data) {
    store.state = data;
    title(data);
    // The numbers of this state follow at once.
    store.usage = null;
  },
  usage(data) {
    const fresh = store.usage === null;
    const sampled = store.use(data);
    connected('live', 'live');
    if (fresh) keepingPlace(show);
    else view.use(sampled);
  },
  event(data) {
    store.happened(data);
    view?.happened();
  },
  busy: () => connected('too many readers, trying again', 'lost'),
};

window.addEventListener('hashchange', () => {
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

main.replaceChildren(h('p', { class: 'notice quiet' }, 'Asking the agent…'));
void follow({
  event: (name, data) => on[name]?.(data),
  lost: () => connected('connection lost, trying again', 'lost'),
  token: askToken,
});
