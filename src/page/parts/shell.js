import { setText } from './dom.js';
import { moment } from './format.js';

const byId = (id) => document.getElementById(id);

/**
 * The frame of every page: connection, bearer token, theme, keys, filter.
 *
 * `stops`: selector of the elements that the keys `j` and `k` move through. `escape`: called when Escape has nothing
 * to close. `filtered`: called after a change of the filter. `keys`: further keys of the page, with their actions.
 */
export function shell({ stops, escape, filtered, keys = {} }) {
  const main = byId('main');
  const filter = byId('filter');

  /**
   * `old`: why the shown figures are out of date, and their time; they turn grey. Null: the figures are current, or
   * none are shown.
   */
  function connected(text, kind, old = null) {
    setText(byId('connection'), text);
    byId('connection').dataset.kind = kind;
    const note = byId('as-of');
    document.body.classList.toggle('stale', old !== null);
    note.hidden = old === null;
    if (old !== null) setText(note, `${old.why} Figures as of ${moment(old.ms)}.`);
  }

  /** Moves through the stops of the page. */
  function step(by) {
    const found = [...main.querySelectorAll(stops)].filter((stop) => stop.offsetParent !== null);
    if (found.length === 0) return;
    const at = found.indexOf(document.activeElement);
    found[at < 0 ? (by > 0 ? 0 : found.length - 1) : Math.max(0, Math.min(found.length - 1, at + by))].focus();
  }

  const KEYS = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    j: () => step(1),
    k: () => step(-1),
    '/': () => filter.focus(),
    '?': () => byId('keys').showModal(),
    t: toggleTheme,
    ...keys,
    Escape() {
      if (document.activeElement === filter) {
        filter.value = '';
        filter.dispatchEvent(new Event('input'));
        filter.blur();
      } else escape();
    },
  };

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') !== null) return;
    const typing = event.target instanceof HTMLInputElement;
    if (typing && event.key !== 'Escape' && event.key !== 'ArrowDown') return;
    const action = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    // Arrows scroll the page until one of the stops has the focus.
    if (action === null || (event.key.startsWith('Arrow') && !typing && !document.activeElement?.matches(stops)))
      return;
    event.preventDefault();
    action();
  });

  filter.addEventListener('input', () => filtered());
  byId('theme').addEventListener('click', toggleTheme);
  byId('help').addEventListener('click', () => byId('keys').showModal());
  paint(localStorage.getItem('theme'));

  return {
    main,
    filter,
    connected,
    /** Resolves with the token that the reader enters. */
    askToken() {
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
    },
    /** Calls `show`, which replaces the content; the keyboard and the scroll position stay where they were. */
    keepingPlace(show) {
      const key = document.activeElement?.dataset?.key;
      const offset = window.scrollY;
      show();
      if (key !== undefined) main.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
      window.scrollTo(0, offset);
    },
  };
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
