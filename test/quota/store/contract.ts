import fc from 'fast-check';
import { test } from 'tap';
import { createEngine, type QuotaEngine } from '../../../src/quota/engine.js';
import type { Decision } from '../../../src/quota/index.js';
import { contentOf, storeContract as rules, type StorePlace } from '../../../src/quota/store/contract.js';
import { check } from '../check.js';
import { busyHistory } from '../core/histories.js';
import { HOUR, SCENARIOS } from '../vectors.js';
import { cases } from '../../cases.js';

export { contentOf } from '../../../src/quota/store/contract.js';
export type { StorePlace as Place } from '../../../src/quota/store/contract.js';

/** The store rules of the engine, all scenarios, and random histories. */
export function storeContract(name: string, place: () => Promise<StorePlace>, shared: boolean): void {
  const opened = async (at: StorePlace, clock = () => 0): Promise<QuotaEngine> =>
    createEngine({ store: await at.open(), clock, pause: () => Promise.resolve() });

  for (const rule of rules(place, shared))
    test(`${name}: ${rule.name}`, async (t) => {
      await rule.run();
      t.end();
    });

  for (const [index, { before, steps }] of SCENARIOS.entries()) {
    test(`${name}: ${steps.map(({ id }) => id).join(' ')}, with a new start after each step`, async (t) => {
      const at = await place();
      let engine = await opened(at);
      for (const command of before) await engine.execute(command, 0);
      for (const { commands, expected, hour = 0 } of steps) {
        let decision: Decision | undefined;
        const now = Math.round(hour * HOUR);
        for (const command of commands) decision = await engine.execute(command, now);
        await engine.close();
        engine = await opened(at, () => now);
        if (decision !== undefined) check(t, decision, (group) => engine.status(group), expected);
      }
      await engine.close();
      await at.destroy();
      t.ok(index >= 0);
    });
  }

  test(`${name}: random histories are there after a new start`, async (t) => {
    await fc.assert(
      fc.asyncProperty(busyHistory(40), async (steps) => {
        const at = await place();
        const engine = await opened(at);
        for (const { command, at: time } of steps) await engine.execute(command, time);
        const before = contentOf(engine);
        await engine.close();
        const again = await opened(at);
        const after = contentOf(again);
        const { drift } = again.refresh();
        await again.close();
        await at.destroy();
        return before === after && drift.length === 0;
      }),
      { numRuns: cases(8, 100) },
    );
    t.end();
  });
}
