#!/usr/bin/env node
import { endAtClosedPipe } from './closed-pipe.js';
import { DEFAULT_COMMAND, namedCommand } from './command-line.js';

endAtClosedPipe();
const argv = process.argv.slice(2);
const isAgent = namedCommand(argv) === DEFAULT_COMMAND;
const { gpuManager } = await (isAgent ? import('./agent-program.js') : import('./gpu-manager.js'));
process.exitCode = await gpuManager(argv);
