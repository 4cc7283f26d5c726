import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A process with a server that reads a body as JSON and answers with the names in it. It sends its port. */
const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  const { NodeNames } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { NodeNames: string[] };
  response.end(JSON.stringify({ NodeNames }));
};

const server = createServer((incoming, response) => void answer(incoming, response));
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit());
