import { names } from './format.js';

/** The words of a filter; every one of them must be found. */
export function wordsOf(text) {
  return text
    .toLowerCase()
    .split(/\s+/u)
    .filter((word) => word !== '');
}

export function matchesContainer(allocation, words) {
  const { namespace, pod, container } = names(allocation);
  return found(`${namespace}/${pod}/${container} ${allocation.quotaGroup ?? ''}`, words);
}

export function matchesEvent({ kind, message, owner }, words) {
  return found(
    `${kind} ${message} ${owner === undefined ? '' : `${owner.namespace}/${owner.pod}/${owner.container}`}`,
    words,
  );
}

function found(text, words) {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}
