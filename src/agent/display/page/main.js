import { containerView } from './container.js';
import { h, setText } from './dom.js';
import { overview } from './overview.js';
import { podView } from './pod.js';
import { shell } from './shell.js';
import { follow } from './stream.js';
import { Store } from './store.js';

const store = new Store();
const compact = document.getElementById('compact');
const { main, filter, connected, askToken, keepingPlace } = shell({
  stops: 'a.slice',
  escape() {
    if (route().name !== 'node') location.hash = '#/';
  },
  filtered: () => view?.filter?.(),
  keys: { c: toggleDensity },
});

/** What is shown: the node, a pod, or one container. */
let view = null;

function route() {
  const [name, ...parts] = location.hash.replace(/^#\/?/u, '').split('/');
  const [first, second] = parts.map(decoded);
  if (name === 'container' && parts.length > 0) return { name, id: decoded(parts.join('/')) };
  return name === 'pod' && parts.length === 2 ? { name, namespace: first, pod: second } : { name: 'node' };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** More GPUs than this are shown compact unless the reader chose otherwise. */
const MOST_FULL = 8;

function density() {
  const chosen = localStorage.getItem('density');
  if (chosen === 'compact' || chosen === 'full') return chosen;
  return store.state.gpus.length > MOST_FULL ? 'compact' : 'full';
}

function toggleDensity() {
  if (store.state === null || route().name !== 'node') return;
  localStorage.setItem('density', density() === 'compact' ? 'full' : 'compact');
  keepingPlace(show);
}

/** Shows a changed state. */
function refresh() {
  if (view?.changed === undefined) keepingPlace(show);
  else view.changed();
}

/** Renders the view that the address names. */
function show() {
  if (store.state === null) return;
  view?.close();
  const { name, id, namespace, pod } = route();
  document.body.dataset.view = name;
  compact.setAttribute('aria-pressed', String(density() === 'compact'));
  if (name === 'container') view = containerView(id, store);
  else if (name === 'pod') view = podView(namespace, pod, store);
  else view = overview(store, () => filter.value, density());
  main.replaceChildren(view.element);
  view.attached?.();
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
    // The figures of this state follow at once.
    store.usage = null;
  },
  usage(data) {
    const fresh = store.usage === null;
    const sampled = store.use(data);
    connected('live', 'live');
    if (fresh) refresh();
    else view.use(sampled);
  },
  event(data) {
    store.happened(data);
    view?.happened();
  },
  busy: () => lost('too many readers, trying again'),
};

/** The shown figures are those of the last usage message. */
function lost(text) {
  connected(text, 'lost', store.usage === null ? null : { why: 'The agent does not answer.', ms: store.usage.at });
}

compact.addEventListener('click', toggleDensity);
window.addEventListener('hashchange', () => {
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

main.replaceChildren(h('p', { class: 'notice quiet' }, 'Asking the agent…'));
void follow({
  event: (name, data) => on[name]?.(data),
  lost: () => lost('connection lost, trying again'),
  token: askToken,
});
