import { test } from 'tap';
import { plain } from '../../src/http/answer.js';
import { joined, sharedAnswer } from '../../src/http/shared-answer.js';

/** A document whose renderings take `costMs` each, and the time that a test sets. */
function document(costMs: number) {
  const state = { nowMs: 0, renderings: 0 };
  const ask = sharedAnswer(
    () => {
      state.nowMs += costMs;
      state.renderings += 1;
      return plain(200, String(state.renderings));
    },
    () => state.nowMs,
  );
  return { state, text: async () => String((await ask()).body) };
}

test('callers at the same time share one rendering', async (t) => {
  const { state, text } = document(1);
  t.same(
    await Promise.all(Array.from({ length: 100 }, text)),
    Array.from({ length: 100 }, () => '1\n'),
  );
  t.equal(state.renderings, 1);
});

test('a caller that does not hurry gets a new rendering', async (t) => {
  const { state, text } = document(10);
  for (let times = 1; times <= 20; times++) {
    t.equal(await text(), `${times}\n`);
    state.nowMs += 1_000;
  }
});

test('renderings take a twenty-fifth of the time, however many callers ask one after the other', async (t) => {
  const { state, text } = document(20);
  while (state.nowMs < 60_000) {
    await text();
    state.nowMs += 1;
  }
  t.ok(state.renderings * 20 < 60_000 * 0.044, `${state.renderings} renderings of 20 ms in a minute`);
  t.ok(state.renderings * 20 > 60_000 * 0.032, `${state.renderings} renderings of 20 ms in a minute`);
});

test('a rendering that fails is refused to all who wait for it, and the next caller renders again', async (t) => {
  let fails = true;
  const ask = joined(async () => {
    if (fails) throw new Error('not now');
    return plain(200, 'a document');
  });
  const refused = await Promise.allSettled([ask(), ask()]);
  t.same(
    refused.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  fails = false;
  t.match(await ask(), { status: 200 });
});
