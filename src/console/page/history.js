import { axis, chart } from './chart.js';
import { h } from './dom.js';
import { bytes, percent, trimmed } from './format.js';
import { read } from './stream.js';

const RANGES = { '1h': '1 hour', '6h': '6 hours', '1d': '1 day', '7d': '7 days' };
const PERIOD_MS = 60_000;

const UNITS = {
  percent: { top: 100, say: percent },
  bytes: { top: null, say: bytes },
  gpus: { top: null, say: (value) => (value === null ? '–' : trimmed(value)) },
};

/**
 * History of the cluster, a node or a pod, as Prometheus has it; nothing where the console has no Prometheus.
 * `of`: `cluster`, `node` or `pod`; `name`: name of the node, UID of the pod.
 */
export function historyView(rows, of, name = '') {
  if (rows.console?.history !== true) return { element: null, close: () => undefined };
  const charts = h('div', { class: 'charts history-charts' });
  const note = h('p', { class: 'quiet', role: 'status' }, 'Asking Prometheus…');
  let range = sessionStorage.getItem('history-range') ?? '1h';
  let timer = null;
  let closed = false;
  const buttons = Object.entries(RANGES).map(([key, label]) =>
    h('button', { type: 'button', class: 'plain', 'data-range': key, click: () => choose(key) }, label),
  );
  const mark = () => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.range === range));
  };

  function choose(key) {
    range = key;
    sessionStorage.setItem('history-range', key);
    mark();
    void ask();
  }

  async function ask() {
    clearTimeout(timer);
    const asked = range;
    const answer = await read(`api/history?of=${of}&name=${encodeURIComponent(name)}&range=${asked}`).catch(() => null);
    if (closed || asked !== range) return;
    if (answer?.ok === true) draw(answer.charts);
    else if (answer !== null) {
      charts.replaceChildren();
      note.textContent = `${answer.reason}.`;
    } else if (charts.childElementCount === 0) note.textContent = 'There is no history of it.';
    note.hidden = charts.childElementCount > 0;
    timer = setTimeout(ask, PERIOD_MS);
  }

  function draw(found) {
    charts.replaceChildren(...found.map((one) => figure(one, range)));
    note.textContent = 'Prometheus has no values of it in this time.';
  }

  mark();
  void ask();
  return {
    element: h(
      'section',
      { class: 'past' },
      h('h2', {}, 'History', h('span', { class: 'ranges', role: 'group', 'aria-label': 'Time' }, buttons)),
      note,
      charts,
    ),
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function figure({ title, unit, values, limit = null }, range) {
  const { top, say } = UNITS[unit];
  const most = Math.max(0, ...values.filter((value) => value !== null));
  const last = values.findLast((value) => value !== null) ?? null;
  const picture = chart({
    height: 60,
    top: top ?? (Math.max(most, limit ?? 0) * 1.15 || 1),
    text: `${title} in the last ${RANGES[range]}: now ${say(last)}, at most ${say(most)}`,
    kind: unit === 'bytes' ? 'memory' : '',
  });
  picture.draw(values, limit);
  return h(
    'figure',
    {},
    h(
      'figcaption',
      {},
      h('span', {}, title),
      h('strong', {}, say(last)),
      h('span', { class: 'quiet' }, `at most ${say(most)}`),
    ),
    picture.element,
    axis(`${RANGES[range]} ago`),
  );
}
