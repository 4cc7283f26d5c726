import { testLongDecisions } from './long-decisions.js';

testLongDecisions({ nodes: 200, offers: ['best'], verbs: ['predicates'], calls: 10 });
