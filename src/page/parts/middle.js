import { h } from './dom.js';

/** Number of characters at the end of a name that always stay: pods of one workload differ there. */
const TAIL = 7;

/** A name that is shortened in the middle if space is short. Its text and its title are the whole name. */
export function middleCut(text, className = '') {
  const characters = [...text];
  const at = Math.max(0, characters.length - TAIL);
  return h(
    'span',
    { class: `middle ${className}`.trim(), title: text },
    h('span', { class: 'head' }, characters.slice(0, at).join('')),
    h('span', { class: 'tail' }, characters.slice(at).join('')),
  );
}
