import { h, setText } from './dom.js';
import { bytesOf, trimmed } from './format.js';

/** GPUs and use of each quota group on this node; null if no pod of the node names a group. */
export function quotaTable(store) {
  if (store.state.allocations.every(({ quotaGroup }) => quotaGroup === undefined)) return null;
  const body = h('tbody', {});
  const element = h(
    'div',
    {},
    h(
      'table',
      { class: 'quota' },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['Group', 'Containers', 'Cores', 'Memory'].map((name) => h('th', { scope: 'col' }, name)),
        ),
      ),
      body,
    ),
    h(
      'p',
      { class: 'quiet note' },
      'On this node only, for pods with the label biz.group.resource.quota. What a group has in the whole cluster: kubectl get bizrq.',
    ),
  );
  let shown = [];
  let rows = [];
  const use = () => {
    for (const { entries, cores, memory } of rows) {
      const used = entries.map(({ at }) => store.usage.slices[at]);
      const sum = (values) => values.reduce((total, value) => total + value, 0);
      setText(
        cores,
        `${trimmed(sum(used.map(({ usedPercent }) => usedPercent)))} of ${sum(entries.map(({ slice }) => slice.allocatedCores))}`,
      );
      setText(
        memory,
        bytesOf(
          sum(used.map(({ usedMemoryBytes }) => usedMemoryBytes)),
          sum(entries.map(({ slice, gpu }) => slice.allocatedMemoryBytes ?? gpu.memoryBytes)),
        ),
      );
    }
  };
  return {
    element,
    use,
    /** Shows only these entries. */
    show(entries) {
      shown = entries;
      const groups = Map.groupBy(shown, ({ allocation }) => allocation.quotaGroup ?? '');
      // Those without a group are the last row.
      rows = [...groups]
        .sort(([a], [b]) => (a === '') - (b === '') || (a < b ? -1 : 1))
        .map(([group, of]) => ({ group, entries: of, cores: h('td', {}), memory: h('td', {}) }));
      body.replaceChildren(
        ...rows.map(({ group, entries: of, cores, memory }) =>
          h(
            'tr',
            { class: group === '' ? 'quiet' : null },
            h('th', { scope: 'row' }, group === '' ? 'no label' : group),
            h('td', {}, String(new Set(of.map(({ allocation }) => allocation.id)).size)),
            cores,
            memory,
          ),
        ),
      );
      if (store.usage !== null) use();
    },
  };
}
