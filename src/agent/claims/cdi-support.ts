import {
  connectConfiguredRuntime,
  type RuntimeConfig,
  type CdiConfiguration,
  type RuntimeVersion,
} from '../runtimes/index.js';

/** Whether containers get the CDI devices that the agent writes, and what to do if they do not. */
export interface CdiSupport {
  readonly state: 'ok' | 'warning' | 'failed';
  readonly what: string;
  /** The advised action; null if none. */
  readonly advice: string | null;
}

/** The runtime's answer about CDI devices. */
export interface CdiAnswer {
  readonly support: CdiSupport;
  /** The runtime accepts no CDI device. */
  readonly rejects: boolean;
}

/** Asks the container runtime whether it accepts CDI devices and where it looks for their specifications. */
export async function examineCdi(config: RuntimeConfig & { readonly cdiPath: string }): Promise<CdiAnswer> {
  try {
    const runtime = await connectConfiguredRuntime(config);
    try {
      const cdi = (await runtime.cdi?.()) ?? null;
      const support = cdiSupport(await runtime.version(), cdi, config.cdiPath);
      return { support, rejects: cdi?.enabled === false };
    } finally {
      runtime.close();
    }
  } catch (error) {
    const what = `CDI cannot be checked: ${(error as Error).message}`;
    return { support: { state: 'warning', what, advice: 'see the check of the runtime' }, rejects: false };
  }
}

/** Whether the runtime reads the CDI specifications that the agent writes to `directory`. */
export function cdiSupport(
  { name, version }: Pick<RuntimeVersion, 'name' | 'version'>,
  cdi: CdiConfiguration | null,
  directory: string,
): CdiSupport {
  const runtime = `${name} ${version}`;
  if (cdi === null || cdi.enabled === null)
    return {
      state: 'warning',
      what: `${runtime} does not tell whether it accepts CDI devices`,
      advice: 'pods with claims need CDI: containerd 2, CRI-O 1.28, or containerd 1.7 with enable_cdi = true',
    };
  if (!cdi.enabled)
    return {
      state: 'failed',
      what: `${runtime} does not accept CDI devices: pods with claims fail when they start`,
      advice:
        'set enable_cdi = true in [plugins."io.containerd.grpc.v1.cri"] of its configuration and restart it, or use containerd 2',
    };
  const { directories } = cdi;
  if (directories !== null && !directories.includes(directory))
    return {
      state: 'failed',
      what: `${runtime} looks for CDI specifications in ${directories.join(', ')}, and the agent writes them to ${directory}`,
      advice: 'set --cdi-path to one of these directories, and mount it there from the host',
    };
  return { state: 'ok', what: `${runtime} accepts CDI devices of ${directory}`, advice: null };
}
