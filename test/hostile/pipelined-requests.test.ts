import { testPipelinedRequests } from './pipelined-requests.js';

/** One for each way to listen: plain, and with TLS; the others listen in the same ways. */
for (const name of ['agent', 'claim-webhook'] as const) testPipelinedRequests(name, 5);
