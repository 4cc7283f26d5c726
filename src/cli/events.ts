import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import type { JournalEntry } from '../agent/node/journal.js';
import { displaySocketOption, withNode } from './display-client.js';
import { outputOption, printItem, type Output } from './output.js';
import { stopSignal } from './stop-signal.js';
import { printable } from './terminal-text.js';

interface Options {
  readonly displaySocket: string;
  readonly follow?: true;
  readonly output: Output;
}

const LOOK_MS = 1_000;

/** `gpu-manager events`: recent events on this node. */
export function eventsCommand(): Command {
  return new Command('events')
    .description('print the events of this node: containers, refusals, GPU health, limits, audit findings')
    .option('-f, --follow', 'keep printing new events')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((options: Options) =>
      withNode(options.displaySocket, async (node) => {
        const end = new AbortController();
        if (options.follow === true) void stopSignal().then(() => end.abort());
        let after = 0;
        let headed = false;
        for (;;) {
          const events = await node.events(after);
          for (const event of events) {
            await printItem(options.output, {
              document: () => event,
              table: () => `${headed ? '' : `${HEADINGS}\n`}${line(event)}\n`,
            });
            headed = true;
          }
          after = events.at(-1)?.sequence ?? after;
          if (options.follow !== true || end.signal.aborted) return;
          await delay(LOOK_MS, undefined, { signal: end.signal }).catch(() => undefined);
        }
      }),
    );
}

const HEADINGS = `${'TIME'.padEnd(24)}    ${'EVENT'.padEnd(12)}  MESSAGE`;

function line({ atMs, level, kind, message, count }: JournalEntry): string {
  const times = count > 1 ? ` (${count} times)` : '';
  return `${new Date(atMs).toISOString()}  ${level === 'warning' ? '!' : ' '} ${printable(kind).padEnd(12)}  ${printable(message)}${times}`;
}
