#!/usr/bin/env node
import { kubectlGpu } from './kubectl/plugin.js';
import { endAtClosedPipe } from './program.js';

/** kubectl looks for a plugin under the name of this program. */
endAtClosedPipe();
process.exitCode = await kubectlGpu(process.argv.slice(2));
