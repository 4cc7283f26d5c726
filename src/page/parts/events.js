import { h } from './dom.js';
import { clock } from './format.js';

/** The latest events, the newest first. */
export function eventList(events, nothing = 'Nothing has happened since the agent started.', most = 60) {
  if (events.length === 0) return h('p', { class: 'quiet' }, nothing);
  const rows = [...events].sort((a, b) => b.sequence - a.sequence).slice(0, most);
  return h(
    'ol',
    { class: 'events' },
    rows.map(({ atMs, kind, level, message, count }) =>
      h(
        'li',
        { class: level },
        h('time', { datetime: new Date(atMs).toISOString() }, clock(atMs)),
        h('span', { class: 'kind' }, kind),
        h('span', { class: 'message' }, message, count > 1 ? h('span', { class: 'quiet' }, ` ×${count}`) : null),
      ),
    ),
  );
}
