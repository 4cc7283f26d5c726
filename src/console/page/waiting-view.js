import { h } from './dom.js';
import { eventLog } from './events.js';
import { matchesEvent } from './filter.js';
import { podTable } from './pod-table.js';
import { wordsOf } from './rows.js';
import { shapesView } from './shapes-view.js';

/** Reports of workloads whose pods the API server refused; the controllers of Kubernetes write them. */
const REFUSED = 'FailedCreate';
const MOST = 100;

/** Pods without a node, pods that kubelets refused, and workloads whose pods the API server refused. */
export function waitingView(rows, filterText) {
  const pods = h('section', {});
  const log = eventLog({ opened: rows.openedEvents, most: MOST });
  const refused = h(
    'section',
    {},
    h('h2', {}, 'Refused workloads'),
    h('p', { class: 'quiet note' }, 'The API server refuses their pods; their controllers try again.'),
    log.element,
  );
  const draw = () => {
    const words = wordsOf(filterText());
    pods.replaceChildren(
      podTable(rows, rows.waiting(), words, { showsWhy: true, nothing: 'No pod waits for a GPU.' }),
      h('p', { class: 'quiet note' }, 'Open a pod to see what each node lacks, the nearest fit, and its quota.'),
    );
    pods.lastElementChild.hidden = rows.waiting().length === 0;
    const events = [...rows.events.values()].filter(({ kind }) => kind === REFUSED);
    refused.hidden = events.length === 0;
    log.show(
      events.map((event) => ({ ...event, sequence: event.atMs })).filter((event) => matchesEvent(event, words)),
      'No refused workload matches the filter.',
    );
  };
  draw();
  const shapes = shapesView();
  return {
    element: h('div', {}, pods, refused, shapes.element),
    tables: ['pods', 'events'],
    draw,
    close: shapes.close,
  };
}
