import { axis, chart } from './chart.js';
import { h, setText, setWidth } from './dom.js';
import { matchesContainer } from './filter.js';
import { bytes, bytesOf, claimNames, count, names, percent, sharers } from './format.js';
import { middleCut } from './middle.js';

export const STATUS_TEXT = {
  healthy: 'healthy',
  probation: 'on probation',
  reset: 'needs a reset',
  failed: 'failed',
  lost: 'lost',
};

/** One GPU: its state, two bars with what is allocated and used, history, and its containers. */
export function gpuPanel(store, gpu, position, entries) {
  const cores = bar(
    store,
    'Cores',
    entries.map((entry) => ({ ...entry, share: entry.slice.allocatedCores })),
  );
  const memory = bar(
    store,
    'Memory',
    entries.map((entry) => ({
      ...entry,
      share: ((entry.slice.allocatedMemoryBytes ?? gpu.memoryBytes) / gpu.memoryBytes) * 100,
    })),
  );
  const history = chart({ height: 32, top: 100, text: `Use of GPU ${gpu.index} in the last five minutes` });
  const rows = entries.map((entry, place) =>
    row(entry, gpu, store.colours.get(entry.allocation.id), (marked) => {
      cores.mark(place, marked);
      memory.mark(place, marked);
    }),
  );
  const more = h('span', {});
  const { status, reason, sinceMs } = gpu.health;
  const element = h(
    'article',
    { class: `gpu ${status}`, id: `gpu-${gpu.index}`, 'aria-label': `GPU ${gpu.index}` },
    h(
      'header',
      {},
      h('h3', {}, `GPU ${gpu.index}`),
      h('span', { class: 'model', title: `${gpu.model}, ${gpu.uuid}` }, gpu.model),
      h('span', { class: `status ${status}` }, STATUS_TEXT[status]),
    ),
    h(
      'p',
      { class: 'quiet facts' },
      [
        gpu.pciBusId.replace(/^0+:/u, ''),
        gpu.numaNode === null ? null : `NUMA ${gpu.numaNode}`,
        gpu.instance === undefined ? null : `MIG ${gpu.instance.profile} of ${gpu.instance.parentUuid}`,
      ]
        .filter((fact) => fact !== null)
        .join(' · '),
      more,
    ),
    reason === null ? null : h('p', { class: 'reason', title: `since ${new Date(sinceMs).toISOString()}` }, reason),
    cores.element,
    memory.element,
    h('div', { class: 'history' }, history.element, axis()),
    entries.length === 0
      ? h('p', { class: 'quiet empty' }, gpu.usable ? 'free' : 'nothing is placed here')
      : h(
          'ul',
          { class: 'slices' },
          rows.map((one) => one.element),
        ),
  );
  return {
    element,
    use(sampled) {
      const { usedPercent, usedMemoryBytes, temperatureCelsius, powerWatts, foreignProcesses } =
        store.usage.gpus[position];
      setText(
        more,
        [
          temperatureCelsius === null ? null : `${temperatureCelsius} °C`,
          powerWatts === null ? null : `${Math.round(powerWatts)} W`,
          foreignProcesses > 0 ? count(foreignProcesses, 'foreign process', 'foreign processes') : null,
        ]
          .filter((fact) => fact !== null)
          .map((fact) => ` · ${fact}`)
          .join(''),
      );
      setText(cores.figure, `${percent(usedPercent)} used, ${gpu.allocatedCores} allocated`);
      setText(
        memory.figure,
        usedMemoryBytes === null
          ? `${bytes(gpu.allocatedMemoryBytes)} allocated`
          : `${bytesOf(usedMemoryBytes, gpu.memoryBytes)} used`,
      );
      entries.forEach(({ slice, at }, place) => {
        const use = store.usage.slices[at];
        const limit = slice.memoryLimitBytes ?? gpu.memoryBytes;
        cores.fill(place, (use.usedPercent / slice.allocatedCores) * 100);
        memory.fill(place, (use.usedMemoryBytes / (slice.allocatedMemoryBytes ?? gpu.memoryBytes)) * 100);
        rows[place].use({
          usedPercent: use.usedPercent,
          usedBytes: use.usedMemoryBytes,
          limit,
          throttled: use.throttledSeconds,
          at: store.usage.at,
        });
      });
      if (sampled) history.draw(store.series[gpu.uuid]?.used ?? []);
    },
    /** True when something of the GPU is shown. */
    filter(words) {
      const shown = rows.map((one) => one.filter(words));
      element.hidden = words.length > 0 && !shown.some((some) => some);
      return !element.hidden;
    },
  };
}

/** A GPU as a bar: one segment for each container, as wide as what was allocated, filled with what it uses. */
function bar(store, label, entries) {
  const figure = h('span', { class: 'figure' });
  const fills = entries.map(() => h('span', { class: 'fill' }));
  const segments = entries.map(({ allocation, share }, at) => {
    const { namespace, pod } = names(allocation);
    const segment = h(
      'span',
      { class: `segment ${store.colours.get(allocation.id)}`, title: `${namespace}/${pod}` },
      fills[at],
    );
    setWidth(segment, share);
    return segment;
  });
  return {
    element: h(
      'div',
      { class: 'gpu-bar' },
      h('p', {}, h('span', {}, label), figure),
      h('div', { class: 'track', 'aria-hidden': true }, segments),
    ),
    figure,
    fill: (at, used) => setWidth(fills[at], used),
    mark: (at, marked) => segments[at].classList.toggle('marked', marked),
  };
}

/**
 * One container on this GPU. `mark` is called when the pointer or the focus enters the row (true) and leaves it
 * (false).
 */
function row({ allocation, slice }, gpu, colour, mark) {
  const { namespace, pod, container } = names(allocation);
  const cores = h('span', { class: 'number' });
  const memory = h('span', { class: 'number' });
  const coreFill = h('span', { class: 'fill' });
  const memoryFill = h('span', { class: 'fill' });
  const waits = h('span', { class: 'waits' });
  const serious = allocation.findings.some((finding) => finding.serious);
  const others = sharers(allocation).length - 1;
  const claims = claimNames(allocation);
  const link = h(
    'a',
    {
      class: `slice ${colour}`,
      href: `#/container/${allocation.id}`,
      'data-key': `${allocation.id}/${gpu.index}`,
      title: [`${namespace}/${pod}/${container}`, ...claims.map((name) => `claim ${name}`)].join(', '),
      mouseenter: () => mark(true),
      mouseleave: () => mark(false),
      focus: () => mark(true),
      blur: () => mark(false),
    },
    h('span', { class: 'swatch', 'aria-hidden': true }),
    h(
      'span',
      { class: 'name' },
      middleCut(pod, 'pod'),
      h(
        'span',
        { class: 'quiet where' },
        [
          namespace,
          container,
          others > 0 ? `and ${count(others, 'other')}` : '',
          claims.length > 0 ? 'claim' : '',
          allocation.unenforced ? 'unenforced' : '',
          allocation.suspension === undefined ? '' : allocation.suspension.step,
        ]
          .filter((part) => part !== '')
          .join(' · '),
      ),
    ),
    h('span', { class: 'use' }, cores, h('span', { class: 'meter', 'aria-hidden': true }, coreFill)),
    h('span', { class: 'use of-memory' }, memory, h('span', { class: 'meter', 'aria-hidden': true }, memoryFill)),
    waits,
  );
  if (serious) link.classList.add('finding');
  const element = h('li', {}, link);
  let before = null;
  return {
    element,
    use({ usedPercent, usedBytes, limit, throttled, at }) {
      setText(
        cores,
        `${Math.round(usedPercent)} of ${slice.share}${slice.softLimit === null ? '' : `–${slice.softLimit}`} %`,
      );
      setText(memory, bytesOf(usedBytes, limit));
      const most = slice.softLimit ?? slice.share;
      setWidth(coreFill, (usedPercent / most) * 100);
      setWidth(memoryFill, (usedBytes / limit) * 100);
      memoryFill.classList.toggle('full', usedBytes > limit * 0.95);
      const rate = before === null || at <= before.at ? 0 : (throttled - before.throttled) / ((at - before.at) / 1000);
      before = { throttled, at };
      setText(waits, serious ? '!' : rate > 0.05 ? 'throttled' : '');
      waits.title = serious
        ? 'serious audit finding'
        : rate > 0.05
          ? `its launches were throttled for ${rate.toFixed(1)} s in the last second`
          : '';
    },
    filter(words) {
      element.hidden = !matchesContainer(allocation, words);
      return !element.hidden;
    },
  };
}
