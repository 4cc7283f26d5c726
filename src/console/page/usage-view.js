import { h } from './dom.js';
import { count, moment } from './format.js';
import { matches, wordsOf } from './rows.js';
import { read, readText } from './stream.js';
import { tableOf } from './table.js';
import { meter } from './tree-table.js';

const PERIOD_MS = 60_000;
const BY = { namespace: 'Namespace', pod: 'Pod', group: 'Quota group', node: 'Node' };
const RANGES = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' };
/** The first moment of a range may have no sample. */
const TOLERANCE_MS = 3_600_000;

/** GPU-hours that were allocated and used; `chosen` is the rest of the address, such as `pod/7d`. */
export function usageView(chosen, filterText) {
  const [wantedBy, wantedRange] = chosen.split('/');
  const by = Object.hasOwn(BY, wantedBy) ? wantedBy : 'namespace';
  const range = Object.hasOwn(RANGES, wantedRange) ? wantedRange : '24h';
  const path = `api/usage?by=${by}&range=${range}`;
  const body = h('div', {}, h('p', { class: 'quiet', role: 'status' }, 'Summing up…'));
  let told = null;
  let timer = null;
  let closed = false;

  const draw = () => {
    if (told !== null) body.replaceChildren(...picture(told, by, wordsOf(filterText())));
  };

  async function ask() {
    try {
      told = await read(path);
      if (!closed) draw();
    } catch {
      // What was seen last stays; the line at the top says if the console is away.
    }
    if (!closed) timer = setTimeout(ask, PERIOD_MS);
  }

  void ask();
  return {
    element: h(
      'section',
      { class: 'usage' },
      h(
        'h2',
        {},
        'Usage',
        choice('Sum up by', BY, by, (key) => `#/usage/${key}/${range}`),
        choice('Time', RANGES, range, (key) => `#/usage/${by}/${key}`),
        h(
          'button',
          {
            type: 'button',
            class: 'plain',
            'data-key': 'csv',
            click: () => void save(path, `usage-${by}-${range}.csv`),
          },
          'CSV',
        ),
      ),
      body,
    ),
    tables: [],
    draw,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** Links of which one is chosen. */
function choice(label, names, chosen, address) {
  return h(
    'span',
    { class: 'ranges', role: 'group', 'aria-label': label },
    Object.entries(names).map(([key, name]) =>
      h(
        'a',
        {
          href: address(key),
          'aria-current': key === chosen ? 'true' : null,
          'data-key': `usage/${label}/${key}`,
        },
        name,
      ),
    ),
  );
}

function picture(told, by, words) {
  if (!told.ok) return [h('p', { class: 'quiet' }, `Not shown: ${told.reason}.`)];
  const rows = told.rows.filter(({ name }) => matches(words, name.toLowerCase()));
  const nothing = told.rows.length === 0 ? 'No GPU was allocated in this time.' : 'Nothing matches the filter.';
  return [
    rows.length === 0
      ? h('p', { class: 'quiet' }, nothing)
      : tableOf(
          [BY[by], 'GPU-hours allocated', 'Used', 'Pods', 'Use'],
          rows.map(({ name, allocatedGpuHours, usedGpuHours, usedPart, pods }) => ({
            class: null,
            cells: [name, allocatedGpuHours, usedGpuHours, pods, meter(usedPart ?? undefined, false)],
          })),
        ),
    h('p', { class: 'quiet note' }, notes(told).join(' ')),
  ];
}

/** Where the figures come from, and what is missing. */
function notes({ source, keeps, sinceMs, fromMs, more, silent }) {
  return [
    'Half a GPU for two hours is one GPU-hour.',
    `The figures are of ${source === 'agents' ? 'the agents' : source}${keeps === null ? '' : `, kept for ${keeps}`}.`,
    ...(fromMs !== null && fromMs - sinceMs > TOLERANCE_MS ? [`Nothing is known before ${moment(fromMs)}.`] : []),
    ...(more === 0 ? [] : [`${count(more, 'more line')} not shown.`]),
    ...(silent.length === 0
      ? []
      : [`Without ${silent.length > 3 ? count(silent.length, 'node') : silent.join(', ')}: no agent answers there.`]),
  ];
}

/** Hands the figures to the browser as a file. */
async function save(path, name) {
  const text = await readText(`${path}&format=csv`).catch(() => null);
  if (text === null) return;
  const href = URL.createObjectURL(new window.Blob([text], { type: 'text/csv' }));
  h('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), PERIOD_MS);
}
