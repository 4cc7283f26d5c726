import { claimNames, names, sharers } from './format.js';

/** The words of a filter; every one of them must be found. */
export function wordsOf(text) {
  return text
    .toLowerCase()
    .split(/\s+/u)
    .filter((word) => word !== '');
}

export function matchesContainer(allocation, words) {
  const containers = [names(allocation), ...sharers(allocation)].map(
    ({ namespace, pod, container }) => `${namespace}/${pod}/${container}`,
  );
  return found([...containers, ...claimNames(allocation), allocation.quotaGroup ?? ''].join(' '), words);
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
