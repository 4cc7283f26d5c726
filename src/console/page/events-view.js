import { h } from './dom.js';
import { eventLog } from './events.js';
import { matchesEvent } from './filter.js';
import { wordsOf } from './rows.js';

/** Lines that are shown at most. */
const MOST = 300;

/** Events that programs of this project reported, and the pods that kubelets refused, the newest first. */
export function eventsView(rows, filterText) {
  const log = eventLog({ opened: rows.openedEvents, most: MOST });
  const draw = () => {
    const words = wordsOf(filterText());
    log.show(
      eventsOf(rows).filter((event) => matchesEvent(event, words)),
      words.length > 0
        ? 'No event matches the filter.'
        : 'The API server has no event of gpu-manager. It keeps events for an hour, unless it is configured otherwise.',
    );
  };
  draw();
  return {
    element: h('section', {}, h('h2', {}, 'Events'), log.element),
    tables: ['events', 'pods'],
    draw,
  };
}

/** Events as the list of a node's page has them. */
function eventsOf(rows) {
  const reported = [...rows.events.values()].map(({ atMs, level, kind, message, count, object }) => ({
    ...{ atMs, level, kind, message, count, sequence: atMs },
    ...(object.kind === 'Pod' ? { owner: { namespace: object.namespace, pod: object.name, container: '' } } : {}),
  }));
  const refused = rows
    .waiting()
    .filter(({ state, sinceMs }) => state === 'refused' && sinceMs !== undefined)
    .map(({ namespace, name, sinceMs, why = 'the kubelet gave no reason' }) => ({
      ...{ atMs: sinceMs, level: 'warning', kind: 'Refused', count: 1, sequence: sinceMs },
      message: `${namespace}/${name}: ${why}`,
      owner: { namespace, pod: name, container: '' },
    }));
  return [...reported, ...refused];
}
