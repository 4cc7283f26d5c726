import { axis, chart } from './chart.js';
import { h } from './dom.js';
import { eventLog } from './events.js';
import { ago, bytes, bytesOf, claimNames, count, names, seconds, sharers, suspensionText } from './format.js';
import { podAddress } from './pod.js';
import { read } from './stream.js';

const PERIOD_MS = 2000;
const MIB = 2 ** 20;

/** View of one container: limits, use, processes, audit findings and events. */
export function containerView(id, store) {
  const body = h('div', {}, h('p', { class: 'quiet' }, 'Asking the agent…'));
  const log = eventLog({ opened: store.openedEvents });
  const events = h('section', { hidden: true }, h('h3', {}, 'Events'), log.element);
  const element = h('div', { class: 'container' }, back(), body, events);
  const show = (parts, happened, nothing) => {
    body.replaceChildren(...parts.filter((part) => part !== null));
    log.show(happened, nothing);
    events.hidden = false;
  };
  let timer = null;
  let closed = false;
  let known = find(store, id);
  const refresh = async () => {
    clearTimeout(timer);
    known = find(store, id) ?? known;
    if (find(store, id) === undefined) {
      const { owner, events: remembered } = lastOf(id, known, store.events);
      show(gone(id, owner, store.state.node), remembered, 'The agent has no event of this container.');
      return;
    }
    try {
      const found = await read(`api/allocations/${encodeURIComponent(id)}`);
      if (closed) return;
      if (found !== null) show(picture(found, store), found.events, 'The agent has no event of this container.');
    } catch {
      // The line at the top reports that the agent does not answer; the last data stay.
    }
    clearTimeout(timer);
    if (!closed) timer = setTimeout(refresh, PERIOD_MS);
  };
  void refresh();
  return {
    element,
    use: () => undefined,
    /** The last event of a container arrives after the state without the container. */
    happened: () => (find(store, id) === undefined ? void refresh() : undefined),
    /** The state of the node has changed. */
    changed: () => void refresh(),
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function find(store, id) {
  return store.state.allocations.find((one) => one.id === id);
}

function back() {
  return h('p', { class: 'back' }, h('a', { href: '#/' }, '← all GPUs'));
}

/**
 * The container that had an allocation last, and its events. The id of an allocation follows from its GPU, so earlier
 * containers of other pods had the same. `known`: the last state of the container, if this page has received one.
 */
function lastOf(id, known, events) {
  const own = events.filter(({ allocation }) => allocation === id);
  const named = ({ owner }) => owner !== undefined && owner.podUid !== '';
  const owner = known?.owners.at(-1) ?? own.findLast(named)?.owner;
  if (owner === undefined) return { owner, events: own };
  const isOwn = (event) =>
    named(event) && event.owner.podUid === owner.podUid && event.owner.container === owner.container;
  const sinceMs = known?.allocatedAtMs ?? Math.min(...own.filter(isOwn).map(({ atMs }) => atMs));
  const concerns = (event) => isOwn(event) || (event.allocation === id && !named(event) && event.atMs >= sinceMs);
  return { owner, events: events.filter(concerns) };
}

/** `owner`: the container, if it is known. */
function gone(id, owner, node) {
  return [
    h('h2', {}, 'This container is gone'),
    owner === undefined
      ? null
      : h(
          'p',
          {},
          'It was ',
          h('a', { href: podAddress(owner) }, `${owner.namespace}/${owner.pod}/${owner.container}`),
          '.',
        ),
    h(
      'p',
      { class: 'quiet' },
      'No allocation ',
      h('code', {}, id),
      ` is on ${node}. Either its pod ended and its part of the GPU is free, or the link belongs to another node.`,
    ),
  ];
}

function picture({ allocation, series }, store) {
  const now = store.usage?.at ?? Date.now();
  const { namespace, pod, container } = names(allocation);
  const memory = allocation.memoryBytes === null ? 'all memory of its GPUs' : bytes(allocation.memoryBytes);
  const claims = claimNames(allocation);
  const together = sharers(allocation);
  const gpus = allocation.slices.length;
  return [
    h(
      'header',
      { class: `title ${store.colours.get(allocation.id)}` },
      h('span', { class: 'swatch', 'aria-hidden': true }),
      h(
        'div',
        {},
        h('h2', {}, pod),
        h('p', { class: 'quiet' }, [namespace, container].filter((part) => part !== '').join(' · ')),
      ),
    ),
    h(
      'dl',
      { class: 'facts' },
      fact('Asked for', `${allocation.cores} cores${gpus > 1 ? ` of ${gpus} GPUs` : ''}, ${memory}`),
      fact('Since', ago(allocation.allocatedAtMs, now)),
      fact('Phase', allocation.phase === 'started' ? 'started' : 'allocated, not started yet'),
      ...(allocation.unenforced ? [fact('Limits', 'not enforced, only compared with its use')] : []),
      ...(allocation.suspension === undefined ? [] : [fact('Suspended', suspensionText(allocation.suspension, now))]),
      fact(
        'Processes',
        allocation.processes === 0
          ? 'none is connected to the agent'
          : count(allocation.processes, 'process', 'processes'),
      ),
      ...(claims.length === 0 ? [] : [fact(claims.length === 1 ? 'Claim' : 'Claims', claims.join(', '))]),
      ...(together.length === 0
        ? []
        : [fact('Shared by', together.map(({ pod: one, container: of }) => `${one}/${of}`).join(', '))]),
      ...(allocation.quotaGroup === undefined ? [] : [fact('Quota group', allocation.quotaGroup)]),
      fact('Allocation', h('code', {}, allocation.id)),
    ),
    allocation.findings.length === 0
      ? null
      : h(
          'ul',
          { class: 'problems', 'aria-label': 'Findings of the audit' },
          allocation.findings.map(({ code, message }) => h('li', {}, h('strong', {}, `${code}: `), message)),
        ),
    ...allocation.slices.map((slice) =>
      device(
        slice,
        series.find(({ gpuUuid }) => gpuUuid === slice.gpuUuid),
      ),
    ),
  ];
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}

/** Use of one GPU by the container. */
function device(slice, series = { used: [], memory: [], throttled: [] }) {
  const { share, softLimit, memoryLimitBytes, gpuMemoryBytes, counters } = slice;
  const precedence = slice.priority === undefined ? '' : `, ${slice.priority} priority`;
  const limit = memoryLimitBytes ?? gpuMemoryBytes;
  const cores = chart({
    height: 60,
    top: Math.max(10, Math.min(100, (softLimit ?? share) * 1.5)),
    text: 'Cores used in the last five minutes',
  });
  const memory = chart({
    height: 60,
    top: (limit / MIB) * 1.15,
    text: 'Memory used in the last five minutes',
    kind: 'memory',
  });
  const waits = chart({
    height: 60,
    top: Math.max(1, ...series.throttled),
    text: 'Time that launches were throttled in the last five minutes',
    kind: 'waits',
  });
  cores.draw(series.used, softLimit ?? share);
  memory.draw(series.memory, limit / MIB);
  waits.draw(series.throttled);
  const denied = Object.entries(counters?.denied ?? {}).filter(([, times]) => times > 0);
  return h(
    'section',
    { class: 'device' },
    h('h3', {}, `GPU ${slice.gpuIndex}`),
    h(
      'div',
      { class: 'charts' },
      figure(
        cores,
        'Cores',
        `${slice.usedPercent.toFixed(0)} %`,
        softLimit === null
          ? `at most ${share} %${precedence}`
          : `${share} % its own, up to ${softLimit} % while others leave it idle${precedence}`,
      ),
      figure(
        memory,
        'Memory',
        bytesOf(slice.usedMemoryBytes, limit),
        memoryLimitBytes === null ? 'not limited' : `of which the driver keeps ${bytes(slice.driverMemoryBytes)}`,
      ),
      figure(
        waits,
        'Throttled',
        series.throttled.length === 0 ? '–' : `${series.throttled.at(-1).toFixed(2)} s a second`,
        counters === null ? '' : `${seconds(counters.throttledSeconds)} in all`,
      ),
    ),
    counters === null
      ? h('p', { class: 'quiet' }, 'Not started yet.')
      : h(
          'dl',
          { class: 'facts' },
          ...(slice.hostBackedLimitBytes === 0 && slice.hostBackedBytes === 0
            ? []
            : [
                fact(
                  'On the host, beyond its memory limit',
                  bytesOf(slice.hostBackedBytes, slice.hostBackedLimitBytes),
                ),
              ]),
          fact('Launches', counters.launches.toLocaleString('en')),
          fact('Of which throttled', counters.waits.toLocaleString('en')),
          fact('GPU time charged', seconds(counters.chargedSeconds)),
          fact(
            'Memory denied',
            denied.length === 0
              ? 'never'
              : `${denied.map(([api, times]) => `${api} ${times}×`).join(', ')} (${bytes(counters.deniedBytes)})`,
          ),
          fact('Peak memory', slice.peakMemoryBytes === null ? '–' : bytes(slice.peakMemoryBytes)),
          fact(
            'Control error',
            slice.controlError === null
              ? 'not measured: throttled less than 80 % of the time'
              : `${(slice.controlError * 100).toFixed(1)} points`,
          ),
          fact('Processes on the GPU', slice.pids.length === 0 ? 'none' : slice.pids.join(', ')),
        ),
  );
}

function figure(picture, title, value, note) {
  return h(
    'figure',
    {},
    h('figcaption', {}, h('span', {}, title), h('strong', {}, value), h('span', { class: 'quiet' }, note)),
    picture.element,
    axis(),
  );
}
