import { axis, chart } from './chart.js';
import { h } from './dom.js';
import { eventLog } from './events.js';
import { ago, bytes, bytesOf, claimNames, count, names, seconds, sharers, suspensionText } from './format.js';
import { podAddress } from './pod.js';
import { read } from './stream.js';

const PERIOD_MS = 2000;
const MIB = 2 ** 20;
const MINUTE_MS = 60_000;
/** Minutes that a chart shows: the first by samples every two seconds, the others by the minute. */
const RANGES = {
  live: { minutes: 5, name: '5 min', words: 'five minutes' },
  '1h': { minutes: 60, name: '1 h', words: 'hour' },
  '3h': { minutes: 180, name: '3 h', words: 'three hours' },
};
const RANGE_KEY = 'container-range';

/** View of one container: limits, use, processes, audit findings and events. */
export function containerView(id, store) {
  const body = h('div', {}, h('p', { class: 'quiet' }, 'Asking the agent…'));
  const log = eventLog({ opened: store.openedEvents });
  const events = h('section', { hidden: true }, h('h3', {}, 'Events'), log.element);
  let range = sessionStorage.getItem(RANGE_KEY) ?? 'live';
  if (!Object.hasOwn(RANGES, range)) range = 'live';
  const ranges = rangeButtons((key) => {
    range = key;
    sessionStorage.setItem(RANGE_KEY, key);
    ranges.press(range);
    void refresh();
  });
  ranges.press(range);
  const element = h('div', { class: 'container' }, back(), ranges.element, body, events);
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
      ranges.element.hidden = true;
      const { owner, events: remembered } = lastOf(id, known, store.events);
      show(gone(id, owner, store.state.node), remembered, 'The agent has no event of this container.');
      return;
    }
    try {
      const asked = range;
      const found = await read(`api/allocations/${encodeURIComponent(id)}`);
      if (found !== null && asked !== 'live') found.series = await minutesOf(found.allocation, asked);
      if (closed || asked !== range) return;
      ranges.element.hidden = found === null;
      if (found !== null) show(picture(found, store, range), found.events, 'The agent has no event of this container.');
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

/** The series of an allocation by the minute, each with a value or null for every minute of the range. */
async function minutesOf(allocation, range) {
  const { namespace, pod, container } = names(allocation);
  const { minutes: length } = RANGES[range];
  const end = Math.floor(Date.now() / MINUTE_MS);
  const first = end - length + 1;
  const found = await read(`api/minutes?pod=${encodeURIComponent(`${namespace}/${pod}`)}&since=${first * MINUTE_MS}`);
  return (found?.slices ?? [])
    .filter(({ owner }) => owner.container === container)
    .map(({ gpuUuid, minutes }) => {
      const at = new Map(minutes.map((minute) => [Math.floor(minute.atMs / MINUTE_MS), minute]));
      const values = (of) =>
        Array.from({ length }, (_, place) => {
          const minute = at.get(first + place);
          return minute === undefined || minute.seconds === 0 ? null : of(minute);
        });
      return {
        gpuUuid,
        used: values(({ used, seconds: observed }) => (used / observed) * 100),
        memory: values(({ memoryBytes }) => memoryBytes / MIB),
        throttled: values(({ throttled, seconds: observed }) => throttledOf(throttled) / observed),
      };
    });
}

function throttledOf({ share, priority, lending }) {
  return share + priority + lending;
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

function picture({ allocation, series }, store, range) {
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
        RANGES[range],
      ),
    ),
  ];
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}

/** Made once, so that the keyboard stays on them; `choose` is called with the key of a range. */
function rangeButtons(choose) {
  const buttons = Object.entries(RANGES).map(([key, { name }]) => {
    const button = h('button', { type: 'button', class: 'plain', click: () => choose(key) }, name);
    return { key, button };
  });
  return {
    element: h(
      'p',
      { class: 'ranges', role: 'group', 'aria-label': 'Time of the charts', hidden: true },
      buttons.map(({ button }) => button),
    ),
    press(chosen) {
      for (const { key, button } of buttons) button.setAttribute('aria-pressed', String(key === chosen));
    },
  };
}

/** Use of one GPU by the container, in a range of `RANGES`. */
function device(slice, series = { used: [], memory: [], throttled: [] }, range) {
  const { minutes, words } = range;
  const isLive = range === RANGES.live;
  const length = isLive ? undefined : minutes;
  const { share, softLimit, memoryLimitBytes, gpuMemoryBytes, counters } = slice;
  const precedence = slice.priority === undefined ? '' : `, ${slice.priority} priority`;
  const limit = memoryLimitBytes ?? gpuMemoryBytes;
  const cores = chart({
    height: 60,
    top: Math.max(10, Math.min(100, (softLimit ?? share) * 1.5)),
    text: `Cores used in the last ${words}`,
    length,
  });
  const memory = chart({
    height: 60,
    top: (limit / MIB) * 1.15,
    text: `Memory used in the last ${words}`,
    length,
    kind: 'memory',
  });
  const waits = chart({
    height: 60,
    top: Math.max(1, ...series.throttled),
    text: `Time that launches were throttled in the last ${words}`,
    length,
    kind: 'waits',
  });
  cores.draw(series.used, softLimit ?? share);
  memory.draw(series.memory, limit / MIB);
  waits.draw(series.throttled);
  const start = `${range.name} ago`;
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
        start,
      ),
      figure(
        memory,
        'Memory',
        bytesOf(slice.usedMemoryBytes, limit),
        memoryLimitBytes === null ? 'not limited' : `of which the driver keeps ${bytes(slice.driverMemoryBytes)}`,
        start,
      ),
      figure(
        waits,
        'Throttled',
        throttledText(series.throttled, isLive),
        counters === null ? '' : `${seconds(counters.throttledSeconds)} in all`,
        start,
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

/** The present rate of a live chart, else the part of the observed time. */
function throttledText(values, isLive) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return '–';
  if (isLive) return `${known.at(-1).toFixed(2)} s a second`;
  return `${Math.round((known.reduce((sum, value) => sum + value, 0) / known.length) * 100)} % of the time`;
}

function figure(picture, title, value, note, start) {
  return h(
    'figure',
    {},
    h('figcaption', {}, h('span', {}, title), h('strong', {}, value), h('span', { class: 'quiet' }, note)),
    picture.element,
    axis(start),
  );
}
