import { h, s } from './dom.js';
import { STATUS_TEXT } from './gpu.js';
import { percent } from './format.js';

/** GPUs are drawn as wide as they can be without another row. */
const TILE_WIDTHS = [156, 144, 132, 120];
const TILE_HEIGHT = 56;
const PAD = 10;
const LABEL = 18;
/** Width of a letter of a label, on average. */
const LETTER = 5.8;
const GAP = 10;
/** Height of the lines below a row of GPUs that NVLink joins. */
const WIRE = 14;

const MEANING = {
  PIX: 'one PCIe switch',
  PXB: 'PCIe switches',
  PHB: 'host bridge',
  NODE: 'NUMA node',
  SYS: 'link between NUMA nodes',
};

/**
 * The node as a picture: boxes within boxes for PCIe and NUMA, GPUs in them, lines for NVLink. It fills the available
 * width.
 */
export function topology(store) {
  const { state } = store;
  const holder = h('div', { class: 'topology' });
  const wires = wiring(state.nvlinks);
  let tiles = [];
  let drawnFor = 0;
  const use = () =>
    tiles.forEach(({ position, element }) => fill(element, state.gpus[position], store.usage.gpus[position]));
  const draw = (width) => {
    if (width === 0 || Math.abs(width - drawnFor) < 4) return;
    drawnFor = width;
    tiles = [];
    const wired = state.nvlinks.length > 0;
    const layouts = TILE_WIDTHS.map((tileWidth) => ({ tileWidth, boxes: layout(state, width, wired, tileWidth) }));
    const lowest = Math.min(...layouts.map(({ boxes }) => boxes.height));
    const { tileWidth, boxes } = layouts.find((one) => one.boxes.height === lowest);
    const under = s('g', {});
    const over = s('g', {});
    const at = new Map();
    boxes.draw(0, 0, {
      box(shape, text) {
        under.append(shape);
        over.append(text);
      },
      tile(position, x, y) {
        const element = tile(state.gpus[position], x, y, tileWidth);
        at.set(position, { x, y, width: tileWidth });
        tiles.push({ position, element });
        over.append(element.link);
      },
    });
    const lines = s(
      'g',
      { class: 'wires' },
      wires.flatMap((wire, place) => drawWire(wire, place, at)),
    );
    const height = boxes.height + (wired ? 4 : 0);
    holder.replaceChildren(
      s(
        'svg',
        {
          width: boxes.width,
          height,
          viewBox: `0 0 ${boxes.width} ${height}`,
          role: 'group',
          'aria-label': `Topology of ${state.gpus.length} GPUs`,
        },
        under,
        lines,
        over,
      ),
      legend(state, wires),
    );
    if (store.usage !== null) use();
  };
  const observer = new ResizeObserver(([entry]) => draw(Math.floor(entry.contentRect.width)));
  observer.observe(holder);
  return { element: holder, use, close: () => observer.disconnect() };
}

function layout(state, width, wired, tileWidth) {
  return rows(
    state.tree.map((node) => place(node, width, { state, wired, tileWidth }, 0)),
    width,
    wired,
  );
}

/** Size of a node of the tree, and a function that draws it at a position. */
function place(node, width, plan, depth) {
  if (node.level === 'X') {
    return {
      width: plan.tileWidth,
      height: TILE_HEIGHT,
      leaf: true,
      draw: (x, y, to) => to.tile(node.positions[0], x, y),
    };
  }
  const inner = width - 2 * PAD;
  const content = rows(
    node.children.map((child) => place(child, inner, plan, depth + 1)),
    inner,
    plan.wired,
  );
  const text = label(node, plan.state);
  const own = {
    width: Math.max(content.width + 2 * PAD, Math.min(width, text.length * LETTER + 2 * PAD)),
    height: content.height + LABEL + PAD,
  };
  return {
    ...own,
    leaf: false,
    draw(x, y, to) {
      to.box(
        s('rect', {
          class: `group d${depth % 3}`,
          x: x + 0.5,
          y: y + 0.5,
          width: own.width - 1,
          height: own.height - 1,
          rx: 10,
        }),
        s('text', { class: 'label', x: x + PAD, y: y + 13 }, text),
      );
      content.draw(x + PAD, y + LABEL, to);
    },
  };
}

function label({ level, positions }, { gpus }) {
  const numa = new Set(positions.map((position) => gpus[position].numaNode));
  const [only] = numa;
  const where = numa.size === 1 && only !== null && level !== 'PIX' && level !== 'PXB' ? `NUMA ${only} · ` : '';
  return where !== '' && level === 'NODE' ? `${where}NODE` : `${where}${level} · ${MEANING[level]}`;
}

/** Places parts in rows of at most this width. */
function rows(parts, width, wired) {
  const lines = [];
  for (const part of parts) {
    const line = lines.at(-1);
    if (line !== undefined && line.width + GAP + part.width <= width) {
      line.parts.push(part);
      line.width += GAP + part.width;
      line.height = Math.max(line.height, part.height);
    } else lines.push({ parts: [part], width: part.width, height: part.height });
  }
  const below = (line) => (wired && line.parts.some((part) => part.leaf) ? WIRE : 0);
  return {
    width: Math.max(0, ...lines.map((line) => line.width)),
    height: lines.reduce((sum, line, at) => sum + line.height + below(line) + (at > 0 ? GAP : 0), 0),
    draw(x, y, to) {
      for (const line of lines) {
        let left = x;
        for (const part of line.parts) {
          part.draw(left, y, to);
          left += part.width + GAP;
        }
        y += line.height + below(line) + GAP;
      }
    },
  };
}

function tile({ index, health, usable, model }, x, y, width) {
  const cores = {
    allocated: s('rect', { class: 'allocated', x: 10, y: 28, width: 0, height: 7, rx: 2 }),
    used: s('rect', { class: 'used', x: 10, y: 28, width: 0, height: 7, rx: 2 }),
  };
  const memory = {
    allocated: s('rect', { class: 'allocated', x: 10, y: 40, width: 0, height: 7, rx: 2 }),
    used: s('rect', { class: 'used memory', x: 10, y: 40, width: 0, height: 7, rx: 2 }),
  };
  const number = s('text', { class: 'number', x: width - 10, y: 19, 'text-anchor': 'end' });
  const say = s('title', {}, `GPU ${index}, ${model}, ${STATUS_TEXT[health.status]}`);
  const open = (event) => {
    event.preventDefault();
    const panel = document.getElementById(`gpu-${index}`);
    panel?.scrollIntoView({
      block: 'start',
      behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth',
    });
    panel?.querySelector('a')?.focus({ preventScroll: true });
  };
  const link = s(
    'a',
    {
      class: `tile ${health.status}${usable ? '' : ' unusable'}`,
      href: `#gpu-${index}`,
      transform: `translate(${x} ${y})`,
      'data-key': `tile-${index}`,
      click: open,
    },
    say,
    s('rect', { class: 'body', x: 0.75, y: 0.75, width: width - 1.5, height: TILE_HEIGHT - 1.5, rx: 8 }),
    s('circle', { class: 'health', cx: 14, cy: 15, r: 4 }),
    s('text', { class: 'name', x: 24, y: 19 }, `GPU ${index}`),
    number,
    s('rect', { class: 'gpu-bar', x: 10, y: 28, width: width - 20, height: 7, rx: 2 }),
    cores.allocated,
    cores.used,
    s('rect', { class: 'gpu-bar', x: 10, y: 40, width: width - 20, height: 7, rx: 2 }),
    memory.allocated,
    memory.used,
  );
  return { link, cores, memory, number, barWidth: width - 20 };
}

function fill({ cores, memory, number, barWidth }, gpu, { usedPercent, usedMemoryBytes }) {
  const width = (fraction) => Math.max(0, Math.min(1, fraction)) * barWidth;
  cores.allocated.setAttribute('width', width(gpu.allocatedCores / 100));
  cores.used.setAttribute('width', width((usedPercent ?? 0) / 100));
  memory.allocated.setAttribute('width', width(gpu.allocatedMemoryBytes / gpu.memoryBytes));
  memory.used.setAttribute('width', width((usedMemoryBytes ?? 0) / gpu.memoryBytes));
  number.textContent = percent(usedPercent);
}

/**
 * The lines for NVLinks: a group of GPUs in which all pairs have equally many links becomes one bus, any other pair a
 * line.
 */
export function wiring(nvlinks) {
  const group = new Map();
  for (const [a, b] of nvlinks) {
    const joined = new Set([...(group.get(a) ?? [a]), ...(group.get(b) ?? [b])]);
    for (const member of joined) group.set(member, joined);
  }
  return [...new Set(group.values())].flatMap((members) => {
    const pairs = nvlinks.filter(([a]) => members.has(a));
    const equal = pairs.every(([, , links]) => links === pairs[0][2]);
    const complete = pairs.length === (members.size * (members.size - 1)) / 2;
    if (equal && complete) return [{ bus: true, members: [...members].sort((a, b) => a - b), links: pairs[0][2] }];
    return pairs.map(([a, b, links]) => ({ bus: false, members: [a, b], links }));
  });
}

function drawWire({ bus, members, links }, place, at) {
  const places = members.map((member) => at.get(member));
  const width = Math.min(3.5, 1 + links / 6);
  if (!bus) return [s('path', { d: curve(...places), 'stroke-width': width })];
  const center = (spot) => spot.x + spot.width / 2;
  const drop = 5 + (place % 2) * 4;
  const lines = [...Map.groupBy(places, ({ y }) => y)]
    .sort(([a], [b]) => a - b)
    .map(([y, row]) => ({
      y: y + TILE_HEIGHT + drop,
      from: Math.min(...row.map(center)),
      to: Math.max(...row.map(center)),
    }));
  const paths = lines.map(({ y, from, to }) => `M${from} ${y}H${to}`);
  for (const spot of places) paths.push(`M${center(spot)} ${spot.y + TILE_HEIGHT}v${drop}`);
  if (lines.length > 1) {
    const left = Math.min(...places.map(({ x }) => x)) - 5;
    paths.push(`M${left} ${lines[0].y}V${lines.at(-1).y}`);
    for (const { y, from } of lines) paths.push(`M${left} ${y}H${from}`);
  }
  return [s('path', { d: paths.join(''), 'stroke-width': width })];
}

function curve(a, b) {
  const [from, to] = [a, b].map(({ x, y, width }) => ({ x: x + width / 2, y: y + TILE_HEIGHT }));
  if (from.y === to.y) {
    const depth = Math.min(WIRE + 4, 6 + Math.abs(to.x - from.x) / 30);
    return `M${from.x} ${from.y}C${from.x} ${from.y + depth} ${to.x} ${to.y + depth} ${to.x} ${to.y}`;
  }
  const top = { x: to.x, y: to.y - TILE_HEIGHT };
  return `M${from.x} ${from.y}C${from.x} ${from.y + 26} ${top.x} ${top.y - 26} ${top.x} ${top.y}`;
}

/** `0–3, 6`. */
export function ranges(numbers) {
  const runs = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1) === number - 1) run.push(number);
    else runs.push([number]);
  }
  return runs.map((run) => (run.length > 2 ? `${run[0]}–${run.at(-1)}` : run.join(', '))).join(', ');
}

function legend({ gpus }, wires) {
  const kinds = Map.groupBy(
    wires.filter(({ bus }) => !bus),
    ({ links }) => links,
  );
  const name = (position) => gpus[position].index;
  const lines = [
    ...wires
      .filter(({ bus }) => bus)
      .map(
        ({ members, links }) =>
          `NVLink ×${links} between ${members.length === 2 ? `GPU ${name(members[0])} and ${name(members[1])}` : `every two of GPU ${ranges(members.map(name))}`}`,
      ),
    ...[...kinds].map(([links, some]) => `NVLink ×${links} along ${some.length} lines`),
  ];
  return h(
    'ul',
    { class: 'legend' },
    h('li', {}, h('span', { class: 'key used' }), 'cores in use'),
    h('li', {}, h('span', { class: 'key memory' }), 'memory in use'),
    h('li', {}, h('span', { class: 'key allocated' }), 'allocated'),
    lines.slice(0, 6).map((line) => h('li', {}, h('span', { class: 'key wire' }), line)),
  );
}
