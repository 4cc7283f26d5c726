import { subTopology } from '../../../gpu/topology/topology.js';
import { DriverError, type ExcludedGpu, type Inventory } from '../driver.js';
import { inventoryNotes } from '../notes.js';
import { SYSTEM_LANE } from './call-gate.js';
import { describeCard, optional, type Card } from './card.js';
import {
  EVENT_DOUBLE_BIT_ECC,
  EVENT_XID,
  createEventSet,
  freeEventSet,
  registerEvents,
  supportedEvents,
} from './event-set.js';
import * as identity from './identity.js';
import type { KernelDriver } from './kernel-driver.js';
import type { Nvml } from './nvml.js';
import type { Handle } from './question.js';
import { askTopology } from './topology.js';

/** What is fixed from `nvmlInit` to `nvmlShutdown`: cards with their handles, how they are connected, where their errors arrive. */
export interface Session {
  readonly nvml: Nvml;
  /** Every card that answered, excluded ones too, by UUID. */
  readonly cards: ReadonlyMap<string, Card>;
  readonly inventory: Inventory;
  /** Indexes of cards that are there but did not answer. */
  readonly silent: readonly number[];
  /** Null where this driver reports no errors. */
  readonly events: Handle | null;
  /** UUIDs of the cards that report by themselves both that they are in trouble and that their memory failed. */
  readonly reporting: ReadonlySet<string>;
  /** What a later survey has to find again, else the machine has changed. */
  readonly fingerprint: string;
}

/** Initialises NVML and asks everything that stays the same. Rejects when the driver does not answer; a card that does not is left out, and said. */
export async function openSession(nvml: Nvml, kernel: KernelDriver): Promise<Session> {
  await nvml.require(SYSTEM_LANE, identity.init());
  try {
    const total = await countCards(nvml, kernel);
    const { cards, silent } = await describeCards(nvml, kernel);
    const shared = cards.filter((card) => exclusion(card) === null);
    const everything = await askTopology(nvml, cards);
    const excluded: ExcludedGpu[] = cards.flatMap((card) => {
      const reason = exclusion(card);
      return reason === null ? [] : [{ gpu: card.details, reason }];
    });
    const gpus = shared.map((card) => card.details);
    return {
      nvml,
      cards: new Map(cards.map((card) => [card.details.uuid, card])),
      inventory: {
        driverVersion: await optional(nvml.ask(SYSTEM_LANE, identity.driverVersion())),
        cudaVersion: await optional(nvml.ask(SYSTEM_LANE, identity.cudaVersion())),
        gpus,
        topology: subTopology(
          everything,
          shared.map((card) => cards.indexOf(card)),
        ),
        excluded,
        notes: [...inventoryNotes(gpus, excluded), ...silent.values()],
      },
      ...(await listenForErrors(nvml, cards)),
      silent: [...silent.keys()],
      fingerprint: total + modesOf(cards),
    };
  } catch (error) {
    await nvml.ask(SYSTEM_LANE, identity.shutdown()).catch(() => null);
    throw error;
  }
}

/** Gives handles and events back. What the driver says to that does not matter any more. */
export async function closeSession(session: Session): Promise<void> {
  if (session.events !== null) await session.nvml.ask(SYSTEM_LANE, freeEventSet(session.events)).catch(() => null);
  await session.nvml.ask(SYSTEM_LANE, identity.shutdown()).catch(() => null);
}

/** What the machine looks like now: compare with the fingerprint of a session. */
export async function surveyMachine(session: Session, kernel: KernelDriver): Promise<string> {
  const { nvml } = session;
  const total = await countCards(nvml, kernel);
  const known = [...session.cards.values()].map(async (card) => {
    // A card that does not answer now has not changed its mode.
    const mig = await nvml.ask(card.lane, identity.migMode(card.handle)).catch(() => card.details.mig);
    return { ...card, details: { ...card.details, mig } };
  });
  const back = session.silent.map(async (index) => {
    const answers = await nvml.ask(`GPU ${index}`, identity.handleByIndex(index)).catch(() => null);
    return answers === null ? '' : `; ${index} answers`;
  });
  return total + modesOf(await Promise.all(known)) + (await Promise.all(back)).join('');
}

/** How many cards there are, by NVML's account and by the kernel's. */
async function countCards(nvml: Nvml, kernel: KernelDriver): Promise<string> {
  const count = await nvml.require(SYSTEM_LANE, identity.deviceCount());
  const held = await kernel.cards();
  return `${count} cards, kernel ${held?.join(' ') ?? 'silent'}`;
}

function modesOf(cards: readonly Card[]): string {
  return cards.map(({ details }) => `; ${details.index} ${details.uuid} ${details.mig}`).join('');
}

async function describeCards(
  nvml: Nvml,
  kernel: KernelDriver,
): Promise<{ cards: Card[]; silent: Map<number, string> }> {
  const count = await nvml.require(SYSTEM_LANE, identity.deviceCount());
  const cards: Card[] = [];
  const silent = new Map<number, string>();
  for (let index = 0; index < count; index++) {
    try {
      cards.push(await describeCard(nvml, kernel, index));
    } catch (error) {
      if (!(error instanceof DriverError) || error.code === 'unreachable') throw error;
      silent.set(index, `GPU ${index} does not answer and is left out: ${error.message}`);
    }
  }
  return { cards, silent };
}

function exclusion(card: Card): string | null {
  return card.details.mig === true ? 'it is cut into MIG instances, which are not shared further' : null;
}

/** Subscribes to what cards report: to every kind that each supports. */
async function listenForErrors(nvml: Nvml, cards: readonly Card[]): Promise<Pick<Session, 'events' | 'reporting'>> {
  const events = await optional(nvml.ask(SYSTEM_LANE, createEventSet()));
  const reporting = new Set<string>();
  if (events === null) return { events, reporting };
  for (const card of cards) {
    const supported = await optional(nvml.ask(card.lane, supportedEvents(card.handle)));
    const types = (supported ?? 0n) & (EVENT_XID | EVENT_DOUBLE_BIT_ECC);
    const registered =
      types !== 0n && (await optional(nvml.ask(card.lane, registerEvents(card.handle, types, events)))) === true;
    if (registered && types === (EVENT_XID | EVENT_DOUBLE_BIT_ECC)) reporting.add(card.details.uuid);
  }
  return { events, reporting };
}
