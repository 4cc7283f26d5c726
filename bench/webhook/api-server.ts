import { ApiServer } from '../../test/harness/api-server/api-server.js';

/** The time of an etcd commit on an ordinary disk. */
const COMMIT_MS = Number(process.argv[2]);

/**
 * The test API server as a process of its own, so that its work and its memory do not delay the reviews' caller. Sends
 * its URL to its parent, and ends with it.
 */
const server = new ApiServer({ historyLimit: 200, recordsRequests: false });
await server.start();
server.inject({ verb: ['create', 'update', 'patch'], resource: 'bizgroupledgers' }, { do: 'delay', ms: COMMIT_MS });
process.on('disconnect', () => process.exit());
process.send?.(server.url);
