import { colours } from './colours.js';

const LENGTH = 150;
const MOST_EVENTS = 200;

/** The data of the node that this page has received. */
export class Store {
  #state = null;
  /** By allocation: the classes of its colour and texture. */
  colours = new Map();
  usage = null;
  /** Null: none are known here, and none are shown. */
  events = [];
  periodMs = 2000;
  /** By UUID: { used, memory }, the latest last. */
  series = {};
  /** Folded events that the reader has opened. */
  openedEvents = new Set();
  #sampledAt = 0;

  get state() {
    return this.#state;
  }

  set state(state) {
    this.#state = state;
    this.colours = colours(state.allocations);
  }

  hello({ periodMs, gpus, events }) {
    this.periodMs = periodMs;
    this.series = gpus;
    this.events = events;
  }

  /** Adds the present use of GPUs and containers; true when a sample was added to the history. */
  use(usage) {
    this.usage = usage;
    if (usage.at - this.#sampledAt < this.periodMs * 0.9) return false;
    this.#sampledAt = usage.at;
    this.state.gpus.forEach(({ uuid }, at) => {
      const kept = (this.series[uuid] ??= { used: [], memory: [] });
      const { usedPercent, usedMemoryBytes } = usage.gpus[at] ?? { usedPercent: null, usedMemoryBytes: null };
      push(kept.used, usedPercent);
      push(kept.memory, usedMemoryBytes === null ? null : usedMemoryBytes / 2 ** 20);
    });
    return true;
  }

  happened(event) {
    const stays = ({ sequence }) => sequence !== event.sequence && sequence !== event.replaces;
    this.events = [...this.events.filter(stays), event].slice(-MOST_EVENTS);
  }

  /** Every slice with its allocation, in the order of the usage. */
  slices() {
    return this.state.allocations.flatMap((allocation) => allocation.slices.map((slice) => ({ allocation, slice })));
  }
}

function push(values, value) {
  values.push(value);
  if (values.length > LENGTH) values.shift();
}
