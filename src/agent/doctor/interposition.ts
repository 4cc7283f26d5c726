import { access, readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_DEVICES } from '../../abi/vgpu-abi.js';
import { failed, ok, reasonOf, skipped, warning, type Diagnosis } from './diagnosis.js';
import { runProbe, tryEnforcement, TRIAL_BYTES } from './enforcement-trial.js';
import type { LimitedReport, ProbeReport } from './interposition-probe.js';
import { CURRENT, type LibrariesConfig, parseVolumeConfig, SHARED_VOLUME } from '../libraries/index.js';

/** The mirror from which shared containers get the driver's libraries, according to volume.conf; null without one. */
async function sharedMirror(config: LibrariesConfig): Promise<string | null> {
  if (config.volumeConfigPath === null) return null;
  const parsed = parseVolumeConfig(await readFile(config.volumeConfigPath, 'utf8'));
  if (!parsed.ok) throw new Error(`${config.volumeConfigPath}: ${parsed.reason}`);
  const volume = parsed.volumes.find(({ name }) => name === SHARED_VOLUME);
  return volume === undefined ? null : join(volume.base, volume.name, CURRENT);
}

/** Checks that the mirror of the driver, which containers get, is complete. */
export async function examineMirror(config: LibrariesConfig): Promise<readonly Diagnosis[]> {
  let mirror: string | null;
  try {
    mirror = await sharedMirror(config);
  } catch (error) {
    return [
      failed('mirror', reasonOf(error), 'correct the file that --volume-config names; etc/volume.conf is an example'),
    ];
  }
  if (mirror === null)
    return [
      warning(
        'mirror',
        'no mirror of the driver for shared GPUs is configured: containers get the driver of their runtime, without limits',
        'set --volume-config',
      ),
    ];
  try {
    const version = await readlink(mirror);
    await access(join(mirror, 'lib64', 'libcuda.so.1'));
    return [ok('mirror', `${mirror} is ${version}`)];
  } catch (error) {
    return [
      failed(
        'mirror',
        `${mirror} is not complete: ${reasonOf(error)}`,
        "the agent creates it when it starts: search its log for 'library mirror'",
      ),
    ];
  }
}

/** Starts a program as in a container, with the mirror as its library path, and reports which libraries it loaded. */
export async function examineInterposition(config: LibrariesConfig): Promise<readonly Diagnosis[]> {
  const mirror = await sharedMirror(config).catch(() => null);
  if (mirror === null) return [skipped('interposition', 'there is no mirror to try')];
  const advice =
    'containers with a part of a GPU would fail in the same way: check the files in the mirror, and see docs/reference/libraries.md';
  let report: ProbeReport;
  try {
    report = await runProbe(join(mirror, 'lib64'));
  } catch (error) {
    return [
      failed('interposition', `a program with libcuda.so.1 of the mirror does not run: ${lastLine(error)}`, advice),
    ];
  }
  const directory = await realpath(mirror);
  const foreign = report.mapped.filter((path) => !path.startsWith(`${directory}/`));
  if (!report.mapped.some((path) => path.startsWith(`${directory}/`) && path.includes('libcuda'))) {
    return [
      failed(
        'interposition',
        `libcuda.so.1 comes from elsewhere: ${foreign.join(', ') || 'nowhere'}`,
        'something is found before the mirror: an entry of /etc/ld.so.preload or an RPATH',
      ),
    ];
  }
  if (report.init !== 0)
    return [
      failed(
        'interposition',
        `the control library is loaded, but cuInit returns ${report.init} (CUresult)`,
        'the driver behind it does not work here: see the check of the driver, and check the device nodes (nvidia-modprobe -c 0 -u)',
      ),
    ];
  return [
    ok(
      'interposition',
      `a program loads the control library, which reports CUDA ${Math.floor((report.cudaVersion ?? 0) / 1000)}.${((report.cudaVersion ?? 0) % 1000) / 10} with ${report.uuids?.length ?? 0} GPUs`,
    ),
    await examineEnforcement(join(mirror, 'lib64'), report.uuids ?? []),
  ];
}

const MIB = 1 << 20;

/** Checks whether a process with a small memory limit is refused more memory. */
async function examineEnforcement(libraries: string, uuids: readonly string[]): Promise<Diagnosis> {
  const check = 'enforcement';
  if (uuids.length === 0) return skipped(check, 'there is no GPU to try a limit on');
  let found: LimitedReport | null;
  try {
    found = await tryEnforcement(libraries, uuids.slice(0, MAX_DEVICES));
  } catch (error) {
    return failed(
      check,
      `a program with a limit does not run: ${lastLine(error)}`,
      'one without a limit does: check the directory that containers get as /etc/vcuda, and see docs/reference/libraries.md',
    );
  }
  if (found === null)
    return failed(
      check,
      'a program with a limit cannot start CUDA',
      'one without a limit can: the library does not accept the limits file; agent and library must be of one release',
    );
  if (found.problem !== null)
    return skipped(check, `a limit can only be tried with the rights of the agent (CAP_SYS_ADMIN): ${found.problem}`);
  const { context, within, beyond, totalBytes } = found;
  if (context !== 0)
    return warning(
      check,
      `a limit could not be tried: cuCtxCreate returns ${context} (CUresult)`,
      'the GPU may be full, or in exclusive mode; try again when it has room',
    );
  if (within !== 0)
    return warning(
      check,
      `a limit could not be tried: an allocation within it returns ${within} (CUresult)`,
      'the GPU may be full; try again when it has room',
    );
  if (beyond === 0)
    return failed(
      check,
      `a program limited to ${TRIAL_BYTES / MIB} MiB was given more`,
      'the library is loaded but does not enforce the limit: agent and library must be of one release; see docs/reference/libraries.md',
    );
  return ok(
    check,
    `a program limited to ${TRIAL_BYTES / MIB} MiB sees ${totalBytes / MIB} MiB and is refused more (CUresult ${beyond})`,
  );
}

function lastLine(error: unknown): string {
  const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
  const lines = (stderr ?? '').split('\n').filter((line) => /error|cannot|undefined|fault/iu.test(line));
  return lines.at(-1)?.trim() ?? message.split('\n')[0] ?? '';
}
