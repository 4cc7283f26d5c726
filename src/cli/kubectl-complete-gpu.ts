#!/usr/bin/env node
import { endAtClosedPipe } from './closed-pipe.js';
import { kubectlGpu } from './kubectl/plugin.js';

/** kubectl 1.26 and later starts this program, `kubectl_complete-gpu`, to complete the words after `kubectl gpu`. */
endAtClosedPipe();
process.exitCode = await kubectlGpu(['__complete', ...process.argv.slice(2)]);
