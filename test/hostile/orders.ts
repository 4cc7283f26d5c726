import { createInterface } from 'node:readline';

/** What an attacked program reports to the test that started it, until the test ends it. */
export async function obeyOrders(failures: () => number): Promise<void> {
  console.log(JSON.stringify({ ready: true }));
  process.on('uncaughtException', (error) => {
    console.log(JSON.stringify({ uncaught: error.stack }));
    process.exit(70);
  });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line !== 'usage') continue;
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const { maxRSS } = process.resourceUsage();
    const memory = { peakBytes: maxRSS * 1024, heldBytes: heapUsed + external };
    console.log(JSON.stringify({ cpuUs: user + system, ...memory, failures: failures() }));
  }
  process.exit(0);
}
