#!/usr/bin/env node
import { gpuManager } from './gpu-manager.js';
import { endAtClosedPipe } from './program.js';

endAtClosedPipe();
process.exitCode = await gpuManager(process.argv.slice(2));
