#!/usr/bin/env node
import { endAtClosedPipe } from './closed-pipe.js';
import { kubectlGpu } from './kubectl/plugin.js';

/** kubectl looks for a plugin under the name of this program. */
endAtClosedPipe();
process.exitCode = await kubectlGpu(process.argv.slice(2));
