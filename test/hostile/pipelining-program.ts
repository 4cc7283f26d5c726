/**
 * Sends pipelined requests on 64 connections from 8 addresses of loopback until it is killed: half of the connections
 * read the answers, the others never do, and every connection that is closed is opened again.
 *
 *     pipelining-program.js PORT tls|plain PATH...
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

const CONNECTIONS = 64;
const ADDRESSES = 8;

const [port = '0', kind = 'plain', ...paths] = process.argv.slice(2);

function flood(index: number): void {
  const path = paths[index % paths.length] ?? '/';
  const requests = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(1_000));
  const tcp = connect({ port: Number(port), host: '127.0.0.1', localAddress: `127.0.0.${2 + (index % ADDRESSES)}` });
  const socket: Socket = kind === 'tls' ? connectTls({ socket: tcp, rejectUnauthorized: false }) : tcp;
  tcp.on('error', () => undefined);
  socket.on('error', () => undefined);
  socket.once('close', () => setImmediate(flood, index));
  if (index % 2 === 0) socket.resume();
  const send = (): void => {
    while (socket.writable && socket.write(requests));
  };
  socket.once(kind === 'tls' ? 'secureConnect' : 'connect', send).on('drain', send);
}

for (let index = 0; index < CONNECTIONS; index++) flood(index);
console.log('flooding');
process.stdin.on('end', () => process.exit(0)).resume();
