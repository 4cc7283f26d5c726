/**
 * Number of columns for `count` panels where `most` fit beside each other: no more rows than needed, rows as even as
 * possible, and no panel alone in the last row if another number of columns avoids that.
 */
export function columns(count, most) {
  const even = (rows) => Math.ceil(count / rows);
  const least = Math.ceil(count / Math.max(1, most));
  for (let rows = least; even(rows) > 1; rows++) if (count % even(rows) !== 1) return even(rows);
  return Math.max(1, even(Math.max(1, least)));
}

/**
 * Adapts the columns of a grid to its width. Call `arrange` when the grid is first shown and when its content
 * changes. `least` is the minimum width of a panel in rem.
 */
export function balancedGrid(element, least) {
  const arrange = () => {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const gap = parseFloat(getComputedStyle(element).columnGap) || 0;
    const width = element.clientWidth;
    if (width === 0) return;
    const shown = [...element.children].filter((child) => !child.hidden);
    const most = Math.max(1, Math.floor((width + gap) / (least * rem + gap)));
    const count = columns(shown.length, most);
    element.style.setProperty('--columns', String(count));
    for (const child of element.children) child.classList.remove('wide');
    if (count > 1 && shown.length % count === 1) shown.at(-1).classList.add('wide');
  };
  const observer = new ResizeObserver(arrange);
  observer.observe(element);
  return { arrange, close: () => observer.disconnect() };
}
