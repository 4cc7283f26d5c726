import { axis, chart } from './chart.js';
import { h } from './dom.js';
import { eventList } from './events.js';
import { ago, bytes, bytesOf, count, hue, names, seconds } from './format.js';
import { read } from './stream.js';

const PERIOD_MS = 2000;
const MIB = 2 ** 20;

/** One container: its limits, what it does, its processes, what the audit says and what happened to it. */
export function containerView(id, store) {
  const element = h('div', { class: 'container' }, h('p', { class: 'quiet' }, 'Asking the agent…'));
  let timer = null;
  let closed = false;
  const look = async () => {
    try {
      const found = await read(`api/allocations/${id}`);
      if (!closed)
        element.replaceChildren(...(found === null ? gone(id) : picture(found, store.usage?.at ?? Date.now())));
    } catch {
      // The line at the top says that the agent is away; what was seen last stays.
    }
    if (!closed) timer = setTimeout(look, PERIOD_MS);
  };
  void look();
  return {
    element,
    use: () => undefined,
    happened: () => undefined,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function back() {
  return h('p', { class: 'back' }, h('a', { href: '#/' }, '← all GPUs'));
}

function gone(id) {
  return [
    back(),
    h('h2', {}, 'This container is gone'),
    h(
      'p',
      { class: 'quiet' },
      `No allocation ${id} is on this node any more. Its pod ended, and its part of the GPU is free.`,
    ),
  ];
}

function picture({ allocation, series, events }, now) {
  const { namespace, pod, container } = names(allocation);
  const memory = allocation.memoryBytes === null ? 'all memory of its GPUs' : bytes(allocation.memoryBytes);
  return [
    back(),
    h(
      'header',
      { class: `title h${hue(namespace, pod)}` },
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
      fact('Asked for', `${allocation.cores} cores, ${memory}`),
      fact('Since', ago(allocation.allocatedAtMs, now)),
      fact('Phase', allocation.phase === 'started' ? 'started' : 'allocated, not started yet'),
      ...(allocation.unenforced ? [fact('Limits', 'not enforced, only compared with its use')] : []),
      fact(
        'Processes',
        allocation.processes === 0 ? 'none has greeted the agent' : count(allocation.processes, 'process', 'processes'),
      ),
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
    h('section', {}, h('h3', {}, 'Events'), eventList(events, 'Nothing has happened to it that the agent remembers.')),
  ].filter((part) => part !== null);
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}

/** What it does on one of its GPUs. */
function device(slice, series = { used: [], memory: [], throttled: [] }) {
  const { share, softLimit, memoryLimitBytes, cardMemoryBytes, counters } = slice;
  const precedence = slice.priority === undefined ? '' : `, ${slice.priority} priority`;
  const limit = memoryLimitBytes ?? cardMemoryBytes;
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
    text: 'Time that launches waited in the last five minutes',
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
          fact('Of which waited', counters.waits.toLocaleString('en')),
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
            slice.controlError === null ? 'did not want its share' : `${(slice.controlError * 100).toFixed(1)} points`,
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
