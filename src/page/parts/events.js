import { h } from './dom.js';
import { count, moment } from './format.js';

/** Fewer events of a kind than this stay single lines. */
const FOLD_FROM = 3;

/**
 * Events in lines, the newest first; each line is a list of events. Between two warnings, events of one kind are one
 * line, and neighbouring warnings that differ only in their pods are one line.
 */
export function linesOf(events) {
  const newestFirst = [...events].sort((a, b) => b.sequence - a.sequence);
  const lines = [];
  let run = { level: '', byKind: new Map() };
  for (const event of newestFirst) {
    if (event.level !== run.level) run = { level: event.level, byKind: new Map() };
    const kind = event.level === 'info' ? event.kind : `${event.kind} ${reasonOf(event)}`;
    const line = run.byKind.get(kind);
    if (line === undefined) {
      run.byKind.set(kind, [event]);
      lines.push(run.byKind.get(kind));
    } else line.push(event);
  }
  return lines
    .flatMap((line) => (line.length < FOLD_FROM ? line.map((event) => [event]) : [line]))
    .sort(([a], [b]) => b.sequence - a.sequence);
}

/** The message without the pod. */
function reasonOf({ message, owner }) {
  const pod = owner === undefined ? '' : `${owner.namespace}/${owner.pod}: `;
  return pod !== '' && message.startsWith(pod) ? message.slice(pod.length) : message;
}

/** A list of events. `opened` keeps the open lines when the list is rebuilt. */
export function eventLog({ opened = new Set(), most = 60 } = {}) {
  const element = h('div', {});
  return {
    element,
    /** Shows these events, or the text `nothing` if there are none. */
    show(events, nothing) {
      const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
      const lines = linesOf(events).slice(0, most);
      element.replaceChildren(
        lines.length === 0
          ? h('p', { class: 'quiet' }, nothing)
          : h(
              'ol',
              { class: 'events' },
              lines.map((line) => (line.length === 1 ? single(line[0]) : fold(line, opened))),
            ),
      );
      if (focused !== undefined)
        element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    },
  };
}

function single(event) {
  const { message, count: times } = event;
  return h(
    'li',
    { class: event.level },
    ...cells(event, message, times > 1 ? h('span', { class: 'quiet' }, ` ×${times}`) : null),
  );
}

/** Many events as one line that opens. */
function fold(line, opened) {
  const [newest] = line;
  const oldest = line.at(-1);
  const key = `events-${newest.kind}-${oldest.sequence}`;
  const times = line.reduce((sum, event) => sum + event.count, 0);
  const same = newest.level === 'info' ? `latest ${newest.message}` : reasonOf(newest);
  return h(
    'li',
    { class: `fold ${newest.level}` },
    h(
      'details',
      {
        open: opened.has(key),
        toggle: (event) => (event.target.open ? opened.add(key) : opened.delete(key)),
      },
      h(
        'summary',
        { 'data-key': key },
        ...cells(newest, h('strong', {}, count(times, 'time')), ` since ${moment(oldest.atMs)}: ${same}`),
      ),
      h('ol', {}, line.map(single)),
    ),
  );
}

function cells({ atMs, kind }, ...message) {
  return [
    h('time', { datetime: new Date(atMs).toISOString() }, moment(atMs)),
    h('span', { class: 'kind' }, kind),
    h('span', { class: 'message' }, ...message),
  ];
}
