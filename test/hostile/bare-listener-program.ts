/** A server that does nothing, in a process of its own: how long an answer takes on this machine now. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((_request, response) => response.end('ok'));
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.stdin.on('end', () => process.exit(0)).resume();
