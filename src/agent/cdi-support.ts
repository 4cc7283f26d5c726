import type { AgentConfig } from './config.js';
import { connectConfiguredRuntime, type RuntimeConfig } from './configured-runtime.js';
import { failed, ok, reasonOf, warning, type Diagnosis } from './diagnosis.js';
import type { CdiConfiguration, RuntimeVersion } from './runtimes/container.js';

/** The runtime's answer about CDI devices. */
export interface CdiAnswer {
  readonly diagnosis: Diagnosis;
  /** The runtime accepts no CDI device. */
  readonly rejects: boolean;
}

/** Asks the container runtime whether it accepts CDI devices and where it looks for their specifications. */
export async function examineCdi(config: RuntimeConfig & Pick<AgentConfig, 'cdiPath'>): Promise<CdiAnswer> {
  try {
    const runtime = await connectConfiguredRuntime(config);
    try {
      const cdi = (await runtime.cdi?.()) ?? null;
      const diagnosis = diagnoseCdi(await runtime.version(), cdi, config.cdiPath);
      return { diagnosis, rejects: cdi?.enabled === false };
    } finally {
      runtime.close();
    }
  } catch (error) {
    const diagnosis = warning('claims', `CDI cannot be checked: ${reasonOf(error)}`, 'see the check of the runtime');
    return { diagnosis, rejects: false };
  }
}

/** Whether the runtime reads the CDI specifications that the agent writes to `directory`. */
export function diagnoseCdi(
  { name, version }: Pick<RuntimeVersion, 'name' | 'version'>,
  cdi: CdiConfiguration | null,
  directory: string,
): Diagnosis {
  const runtime = `${name} ${version}`;
  if (cdi === null || cdi.enabled === null)
    return warning(
      'claims',
      `${runtime} does not tell whether it accepts CDI devices`,
      'pods with claims need CDI: containerd 2, CRI-O 1.28, or containerd 1.7 with enable_cdi = true',
    );
  if (!cdi.enabled)
    return failed(
      'claims',
      `${runtime} does not accept CDI devices: pods with claims fail when they start`,
      'set enable_cdi = true in [plugins."io.containerd.grpc.v1.cri"] of its configuration and restart it, or use containerd 2',
    );
  const { directories } = cdi;
  if (directories !== null && !directories.includes(directory))
    return failed(
      'claims',
      `${runtime} looks for CDI specifications in ${directories.join(', ')}, and the agent writes them to ${directory}`,
      'set --cdi-path to one of these directories, and mount it there from the host',
    );
  return ok('claims', `${runtime} accepts CDI devices of ${directory}`);
}
