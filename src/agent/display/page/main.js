import { containerView } from './container.js';
import { h, setText } from './dom.js';
import { overview } from './overview.js';
import { follow } from './stream.js';
import { Store } from './store.js';

const store = new Store();
const byId = (id) => document.getElementById(id);
const main = byId('main');
const filter = byId('filter');

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

/** Shows a changed state; who was somewhere with the keyboard stays there. */
function refresh() {
  const key = document.activeElement?.dataset?.key;
  const offset = window.scrollY;
  show();
  if (key !== undefined) main.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  window.scrollTo(0, offset);
}

function title({ node, version, driverVersion }) {
  setText(byId('node'), node);
  setText(
    byId('versions'),
    [`gpu-manager ${version}`, driverVersion === null ? null : `driver ${driverVersion}`]
      .filter((part) => part !== null)
      .join(' · '),
  );
  document.title = `${node} – GPUs`;
}

function connected(text, kind) {
  setText(byId('connection'), text);
  byId('connection').dataset.kind = kind;
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
    if (fresh) refresh();
    else view.use(sampled);
  },
  event(data) {
    store.happened(data);
    view?.happened();
  },
  busy: () => connected('too many readers, trying again', 'lost'),
};

function askToken() {
  const dialog = byId('token');
  connected('a token is needed', 'lost');
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      'close',
      () => {
        resolve(byId('token-text').value.trim());
        byId('token-text').value = '';
      },
      { once: true },
    );
  });
}

function paint(theme) {
  document.documentElement.style.colorScheme = theme ?? 'light dark';
}

function toggleTheme() {
  const dark =
    getComputedStyle(document.documentElement).colorScheme === 'light dark'
      ? matchMedia('(prefers-color-scheme: dark)').matches
      : document.documentElement.style.colorScheme === 'dark';
  const theme = dark ? 'light' : 'dark';
  localStorage.setItem('theme', theme);
  paint(theme);
}

/** Moves through the containers of the page. */
function step(by) {
  const stops = [...main.querySelectorAll('a.slice')].filter((stop) => stop.offsetParent !== null);
  if (stops.length === 0) return;
  const at = stops.indexOf(document.activeElement);
  stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : Math.max(0, Math.min(stops.length - 1, at + by))].focus();
}

const KEYS = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  j: () => step(1),
  k: () => step(-1),
  '/': () => filter.focus(),
  '?': () => byId('keys').showModal(),
  t: toggleTheme,
  Escape() {
    if (document.activeElement === filter) {
      filter.value = '';
      filter.dispatchEvent(new Event('input'));
      filter.blur();
    } else if (route().name !== 'node') location.hash = '#/';
  },
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') !== null) return;
  const typing = event.target instanceof HTMLInputElement;
  if (typing && event.key !== 'Escape' && event.key !== 'ArrowDown') return;
  const action = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
  // Arrows scroll the page until somebody has gone to a container.
  if (action === null || (event.key.startsWith('Arrow') && !typing && !document.activeElement?.matches('a.slice')))
    return;
  event.preventDefault();
  action();
});

filter.addEventListener('input', () => view?.filter?.());
byId('theme').addEventListener('click', toggleTheme);
byId('help').addEventListener('click', () => byId('keys').showModal());
window.addEventListener('hashchange', () => {
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

paint(localStorage.getItem('theme'));
main.replaceChildren(h('p', { class: 'notice quiet' }, 'Asking the agent…'));
void follow({
  event: (name, data) => on[name]?.(data),
  lost: () => connected('connection lost, trying again', 'lost'),
  token: askToken,
});
