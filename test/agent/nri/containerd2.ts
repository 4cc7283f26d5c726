import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { kubernetesHome } from '../../e2e/kubernetes-version.js';
import { CONTAINERD_PROGRAMS } from '../runtimes/containerd-engine.js';
import { daemonSkipReason, findProgram } from '../runtimes/daemon.js';
import { imageSkipReason } from '../runtimes/test-image.js';

/**
 * Reason why no containerd with a Node Resource Interface can start here, or false. The containerd built by the
 * end-to-end tests is preferred to that of the machine.
 */
export function nriSkipReason(): string | false {
  const built = join(kubernetesHome(), 'runtime');
  if (existsSync(join(built, 'containerd'))) process.env.PATH = [built, process.env.PATH ?? ''].join(delimiter);
  const missing = daemonSkipReason(...CONTAINERD_PROGRAMS) || imageSkipReason();
  if (missing !== false) return missing;
  const version = execFileSync(findProgram('containerd') ?? '', ['--version'], { encoding: 'utf8' });
  const [, major = ''] = / v?(\d+)\.\d+/.exec(version) ?? [];
  return Number(major) >= 2 ? false : `needs containerd 2 (npm run kubernetes -- build), found ${version.trim()}`;
}
