import { h } from './dom.js';

/** The end of a pod's name tells it from its siblings; this much of it always stays. */
const TAIL = 7;

/** A name that loses its middle where room is short. Its text and its title are the whole name. */
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
