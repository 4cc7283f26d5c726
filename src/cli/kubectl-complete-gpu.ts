#!/usr/bin/env node
import { kubectlGpu } from './kubectl/plugin.js';
import { endAtClosedPipe } from './program.js';

/** kubectl 1.26 and later starts this program, `kubectl_complete-gpu`, to complete the words after `kubectl gpu`. */
endAtClosedPipe();
process.exitCode = await kubectlGpu(['__complete', ...process.argv.slice(2)]);
