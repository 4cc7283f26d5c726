import { test } from 'tap';
import { Quota, type Decision } from '../../../src/quota/index.js';
import { check } from '../check.js';
import { HOUR, SCENARIOS } from '../vectors.js';

for (const { before, steps } of SCENARIOS) {
  steps.forEach(({ id, says }, index) => {
    test(`${id}: ${says}`, (t) => {
      const quota = new Quota();
      for (const command of before) t.ok(quota.execute(command, 0).allowed, `before: ${command.type}`);
      for (const [at, { commands, expected, hour = 0 }] of steps.slice(0, index + 1).entries()) {
        const decision = commands.map((command) => quota.execute(command, Math.round(hour * HOUR))).at(-1) as Decision;
        if (at === index) check(t, decision, (name) => quota.status(name, quota.now), expected);
      }
      t.end();
    });
  });
}
