import { levelOfNvml, type Level } from '../../../gpu/topology/level.js';
import { topologyOfPairs, type Topology } from '../../../gpu/topology/topology.js';
import { optional, type Card } from './card.js';
import {
  MAX_LINKS,
  REMOTE_GPU,
  REMOTE_SWITCH,
  commonAncestor,
  linkRemoteBusId,
  linkRemoteType,
  linkState,
} from './connection.js';
import type { Nvml } from './nvml.js';

/** Where the active links of one card lead. */
interface Links {
  /** Links to each card, by its PCI bus id. */
  readonly toCards: ReadonlyMap<string, number>;
  /** Links into the NVSwitch fabric. */
  readonly toSwitches: number;
}

/** How the cards are connected, as NVML tells. A pair that it does not tell of counts as the farthest. */
export async function askTopology(nvml: Nvml, cards: readonly Card[]): Promise<Topology> {
  const links = await Promise.all(cards.map((card) => askLinks(nvml, card)));
  const levels = await Promise.all(
    cards.map((a, at) => Promise.all(cards.slice(at + 1).map((b) => askLevel(nvml, a, b)))),
  );
  return topologyOfPairs(cards.length, (a, b) => ({
    level: levels[a]?.[b - a - 1] ?? 'SYS',
    nvlinks: linksOfPair([cards[a] as Card, links[a] as Links], [cards[b] as Card, links[b] as Links]),
  }));
}

async function askLevel(nvml: Nvml, a: Card, b: Card): Promise<Level | null> {
  const value = await optional(nvml.ask(a.lane, commonAncestor(a.handle, b.handle)));
  return value === null ? null : levelOfNvml(value);
}

async function askLinks(nvml: Nvml, card: Card): Promise<Links> {
  const toCards = new Map<string, number>();
  let toSwitches = 0;
  for (let link = 0; link < MAX_LINKS; link++) {
    const state = await optional(nvml.ask(card.lane, linkState(card.handle, link)));
    if (state === null || state === 'absent') break;
    if (state === 'down') continue;
    const type = await optional(nvml.ask(card.lane, linkRemoteType(card.handle, link)));
    if (type === REMOTE_SWITCH) toSwitches++;
    if (type !== null && type !== REMOTE_GPU) continue;
    const remote = await optional(nvml.ask(card.lane, linkRemoteBusId(card.handle, link)));
    if (remote !== null) toCards.set(remote, (toCards.get(remote) ?? 0) + 1);
  }
  return { toCards, toSwitches };
}

/** A link works when both ends see it. Through switches, as many links join a pair as the card with fewer of them has. */
function linksOfPair([a, fromA]: readonly [Card, Links], [b, fromB]: readonly [Card, Links]): number {
  const there = fromA.toCards.get(b.details.pciBusId) ?? 0;
  const back = fromB.toCards.get(a.details.pciBusId) ?? 0;
  return Math.min(there, back) + Math.min(fromA.toSwitches, fromB.toSwitches);
}
