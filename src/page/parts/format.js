const MIB = 2 ** 20;
const GIB = 2 ** 30;
const TIB = 2 ** 40;
/** Browsers take up to 70 ms to make the first of these, so they are made when a text needs them. */
let momentFormat = null;
let numberFormat = null;

/** A number with commas between thousands. */
function number(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1000) return String(value);
  return (numberFormat ??= new Intl.NumberFormat('en')).format(value);
}

/** Bytes as people read them. */
export function bytes(value) {
  if (value === null) return '–';
  if (value >= 10 * GIB) return `${Math.round(value / GIB)} GiB`;
  if (value >= GIB) return `${trimmed(value / GIB)} GiB`;
  return `${Math.round(value / MIB)} MiB`;
}

/** `1.5 of 4 GiB`, in the unit of the second. */
export function bytesOf(used, limit) {
  const unit = limit >= 10 * TIB ? TIB : limit >= GIB ? GIB : MIB;
  const name = unit === TIB ? 'TiB' : unit === GIB ? 'GiB' : 'MiB';
  return `${trimmed(used / unit)} of ${trimmed(limit / unit)} ${name}`;
}

export function percent(value) {
  return value === null ? '–' : `${Math.round(value)} %`;
}

/** At most one decimal digit, and no trailing zero. */
export function trimmed(value) {
  return value >= 100 ? number(Math.round(value)) : String(Math.round(value * 10) / 10);
}

export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function seconds(value) {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${trimmed(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return value < 48 * 3600 ? `${trimmed(value / 3600)} h` : `${Math.round(value / 86400)} days`;
}

const SUSPENDED_BY = {
  operator: 'by an operator of the node',
  pod: 'by its pod',
  idle: 'because it was idle',
  turn: 'because others have their turn',
};

/** What happens to a container's GPU memory. */
export function suspensionText({ step, sinceMs, hostBytes, by, held, wantsSinceMs }, now) {
  return [
    `${step} ${SUSPENDED_BY[by]}, ${ago(sinceMs, now)}`,
    `${bytes(hostBytes)} on the host`,
    ...(held ? ['its calls wait until it is resumed'] : []),
    ...(wantsSinceMs === null ? [] : [`asked for its GPU ${ago(wantsSinceMs, now)}`]),
  ].join(' · ');
}

/** Date, time and zone of the reader: `2026-11-22 22:14:03 GMT+1`. */
export function moment(ms) {
  momentFormat ??= new Intl.DateTimeFormat('en', {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  });
  const parts = Object.fromEntries(momentFormat.formatToParts(ms).map(({ type, value }) => [type, value]));
  const { year, month, day, hour, minute, second, timeZoneName } = parts;
  return `${year}-${month}-${day} ${hour}:${minute}:${second} ${timeZoneName}`;
}

export function ago(ms, now) {
  const past = Math.max(0, now - ms) / 1000;
  return past < 5 ? 'just now' : `${seconds(Math.round(past))} ago`;
}

/** A number that depends only on the text. */
export function hash(text) {
  let value = 2166136261;
  for (const character of text) value = Math.imul(value ^ character.codePointAt(0), 16777619);
  return value >>> 0;
}

/** Names of the container that runs in an allocation. */
export function names(allocation) {
  const owner = allocation.owners.at(-1);
  if (owner === undefined) return { namespace: '', pod: 'not started yet', container: allocation.id.slice(0, 8) };
  if (owner.pod === '') return { namespace: '', pod: 'unnamed container', container: allocation.id.slice(0, 8) };
  return owner;
}

/** The claims of an allocation as `namespace/name`, each once; none for one of the device plugin. */
export function claimNames({ claims = [] }) {
  return [...new Set(claims.map(({ namespace, name }) => `${namespace}/${name}`))];
}

/** The containers that use a claim's slice at the same time; empty if they are fewer than two. */
export function sharers({ claims = [], owners }) {
  return claims.length === 0 || owners.length < 2 ? [] : owners;
}
