import { h, s } from './dom.js';

/** Number of samples in a chart, unless it says another; a shorter series begins further right. */
const LENGTH = 150;

/**
 * A line over the last minutes, of `length` samples. `limit` is drawn as a dashed line; values and limit are in the unit of `top`. `text` says in words what the
 * picture shows.
 */
export function chart({ height, top, text, kind = '', length = LENGTH }) {
  const area = s('path', { class: 'area' });
  const line = s('path', { class: 'line' });
  const limitLine = s('line', { class: 'limit', x1: 0, x2: length - 1, visibility: 'hidden' });
  const picture = s(
    'svg',
    {
      class: `chart ${kind}`,
      viewBox: `0 0 ${length - 1} ${height}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': text,
    },
    area,
    line,
    limitLine,
  );
  const y = (value) => (height - 1 - (Math.min(value, top) / top) * (height - 2)).toFixed(2);
  return {
    element: picture,
    draw(values, limit = null) {
      const first = length - values.length;
      const runs = [];
      values.forEach((value, at) => {
        if (value === null) return;
        const run = runs.at(-1);
        if (run !== undefined && run.at(-1)[0] === first + at - 1) run.push([first + at, y(value)]);
        else runs.push([[first + at, y(value)]]);
      });
      line.setAttribute('d', runs.map((run) => `M${run.map(([x, at]) => `${x} ${at}`).join('L')}`).join(''));
      area.setAttribute(
        'd',
        runs
          .map(
            (run) =>
              `M${run[0][0]} ${height}L${run.map(([x, at]) => `${x} ${at}`).join('L')}L${run.at(-1)[0]} ${height}Z`,
          )
          .join(''),
      );
      if (limit === null || limit > top) return;
      limitLine.setAttribute('visibility', 'visible');
      for (const end of ['y1', 'y2']) limitLine.setAttribute(end, y(limit));
    },
  };
}

/** Labels of a chart's time axis. */
export function axis(start = '5 min ago') {
  return h('p', { class: 'axis', 'aria-hidden': true }, h('span', {}, start), h('span', {}, 'now'));
}
