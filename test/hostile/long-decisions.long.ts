import { testLongDecisions } from './long-decisions.js';

testLongDecisions({
  nodes: 5_000,
  offers: ['best', 'all'],
  verbs: ['predicates', 'prioritize', 'preempt'],
  calls: 30,
});
