import { h } from './dom.js';

/** Number of rows of one step: at first, and whenever the reader comes near the last row. */
const PAGE = 150;

/** Fills `body` with a row for each item, as far as the reader scrolls; returns what says how many are left. */
export function paged(body, items, row) {
  const more = h('p', { class: 'quiet more' });
  let made = 0;
  const add = () => {
    body.append(...items.slice(made, made + PAGE).map(row));
    made = Math.min(items.length, made + PAGE);
    more.hidden = made === items.length;
    more.textContent = `${(items.length - made).toLocaleString('en')} more`;
  };
  add();
  const end = new IntersectionObserver(
    (entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) add();
    },
    { rootMargin: '600px 0px' },
  );
  end.observe(more);
  return more;
}
