import { LISTENERS, testPipelinedRequests } from './pipelined-requests.js';

for (const name of LISTENERS) testPipelinedRequests(name, 15);
