import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { isLeased } from '../../host/reachable-file.js';
import type { Architecture } from './architecture.js';
import type { HostRoot } from './host-root.js';
import { Inventory, type HostFile, type HostInventory } from './inventory.js';
import { applyMirror, CURRENT, currentVersion, VERSIONS } from './mirror.js';
import { planMirror, type ControlLibrary, type MirrorPlan, type MirrorPlanResult } from './mirror-plan.js';
import { removeUnusedVersions } from './mirror-versions.js';
import { SHARED_VOLUME, type VolumeDescription } from './volume-config.js';

export interface LibraryMirrorsOptions {
  readonly volumes: readonly VolumeDescription[];
  readonly hostRoot: HostRoot;
  readonly architecture: Architecture;
  readonly controls: readonly ControlLibrary[];
  /** This project's own files, by their name in volume.conf. */
  readonly ownFiles: ReadonlyMap<string, HostFile>;
  readonly log: Log;
  readonly clock: Clock;
  /** Interval of the comparison between the host's files and the mirrors. */
  readonly periodMs?: number;
  /** The /proc that shows the processes of the whole machine. */
  readonly processes?: string;
}

export type MirrorsResult = { readonly ok: true } | Extract<MirrorPlanResult, { ok: false }>;

interface Mirror {
  readonly volume: VolumeDescription;
  /** Digest of the plan of the last check, and of the plan in place. */
  seen: string | null;
  applied: MirrorPlan | null;
}

/**
 * Keeps the mirrors of a node in the state that volume.conf and the host's driver define. After {@link start} it checks
 * the host's files periodically. A changed driver becomes a new version only after two equal checks, so that an
 * unfinished installation is not mirrored.
 */
export class LibraryMirrors {
  readonly #options: LibraryMirrorsOptions;
  readonly #inventory: Inventory;
  readonly #mirrors: readonly Mirror[];
  readonly #warned = new Set<string>();
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: LibraryMirrorsOptions) {
    this.#options = options;
    this.#inventory = new Inventory(options.hostRoot);
    this.#mirrors = options.volumes.map((volume) => ({ volume, seen: null, applied: null }));
  }

  /**
   * Directory that containers mount as `/usr/local/nvidia`: `shared` with the control libraries, `origin` with the
   * driver's own. Null if volume.conf has none.
   */
  directory(kind: 'shared' | 'origin'): string | null {
    const mirror = this.#mirrors.find(({ volume }) => (volume.name === SHARED_VOLUME) === (kind === 'shared'));
    return mirror === undefined ? null : join(mirror.volume.base, mirror.volume.name, CURRENT);
  }

  /** Paths of a control library in every version of the mirror: containers keep the version that they started with. */
  controlLibraries(soname: string): string[] {
    return this.#mirrors.flatMap(({ volume }) => {
      if (volume.name !== SHARED_VOLUME) return [];
      const versions = join(volume.base, volume.name, VERSIONS);
      if (!existsSync(versions)) return [];
      return readdirSync(versions).map((version) => join(versions, version, 'lib64', soname));
    });
  }

  /**
   * Version of the host's driver in the mirrors; null before the first mirror, or if the driver's files do not show it.
   */
  driverVersion(): string | null {
    return (
      this.#mirrors.map((mirror) => mirror.applied?.driverVersion ?? null).find((version) => version !== null) ?? null
    );
  }

  /**
   * Creates or updates every mirror. A refusal (no driver on the host, no control library) leaves existing mirrors as
   * they are; a later check may succeed.
   */
  async start(): Promise<MirrorsResult> {
    const result = await this.#look({ atOnce: true }).catch((error: unknown) => this.#keep(error));
    this.#cancel = this.#options.clock.every(this.#options.periodMs ?? 30_000, () => {
      this.#running = this.#running.then(() => this.check());
    });
    return result;
  }

  /**
   * Compares the host with the mirrors and renews those that differ; a failure is logged and leaves existing mirrors as
   * they are.
   */
  async check(): Promise<void> {
    try {
      const result = await this.#look({ atOnce: false });
      if (!result.ok) this.#warnOnce(result.reason, { code: result.code });
    } catch (error) {
      this.#options.log.error({ error }, 'library mirror: comparing it with the host failed');
    }
  }

  async stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    await this.#running;
  }

  /**
   * A container that holds a lease on a file of the driver keeps the agent from reading it. The existing mirror stays
   * in use until the lease ends.
   */
  async #keep(error: unknown): Promise<MirrorsResult> {
    if (!isLeased(error)) throw error;
    for (const { volume } of this.#mirrors)
      if ((await currentVersion(join(volume.base, volume.name))) === null) throw error;
    this.#options.log.warn(
      { err: error },
      'library mirror: a file of the driver is leased; the mirrors stay as they are',
    );
    return { ok: true };
  }

  async #look({ atOnce }: { atOnce: boolean }): Promise<MirrorsResult> {
    const inventory = await this.#takeInventory();
    let refusal: MirrorsResult = { ok: true };
    for (const mirror of this.#mirrors) {
      const planned = this.#plan(mirror.volume, inventory);
      if (!planned.ok) {
        refusal = planned;
        continue;
      }
      const { plan } = planned;
      const settled = atOnce || mirror.seen === plan.version;
      mirror.seen = plan.version;
      if (settled && mirror.applied?.version !== plan.version) await this.#apply(mirror, plan);
      await this.#removeUnused(mirror);
    }
    return refusal;
  }

  #takeInventory(): Promise<HostInventory> {
    const { volumes, controls } = this.#options;
    return this.#inventory.take({
      wantsLibrary: (name) =>
        name.startsWith('libnvidia-') ||
        volumes.some((volume) => volume.libraries.some((listed) => name.startsWith(listed))),
      binaries: [...new Set(volumes.flatMap((volume) => volume.binaries))],
      exportsOf: controls.map((control) => control.soname),
    });
  }

  #plan(volume: VolumeDescription, inventory: HostInventory): MirrorPlanResult {
    const { architecture, controls, ownFiles } = this.#options;
    return planMirror({
      volume,
      inventory,
      architecture,
      controls: volume.name === SHARED_VOLUME ? controls : null,
      ownFiles,
    });
  }

  async #apply(mirror: Mirror, plan: MirrorPlan): Promise<void> {
    const { log } = this.#options;
    const { base, name } = mirror.volume;
    const version = await applyMirror(join(base, name), plan);
    mirror.applied = plan;
    log.info({ volume: name, version, driver: plan.driverVersion, files: plan.steps.length }, 'library mirror updated');
    const missing = plan.missing.filter((listed) => !this.#warned.has(listed));
    missing.forEach((listed) => this.#warned.add(listed));
    if (missing.length > 0)
      log.warn({ volume: name, missing }, 'library mirror: the host lacks files that volume.conf lists');
    for (const { path, reason } of plan.leftOut)
      log.debug({ volume: name, path, reason }, 'library mirror: file skipped');
  }

  async #removeUnused(mirror: Mirror): Promise<void> {
    const { base, name } = mirror.volume;
    if (mirror.applied === null) return;
    const removed = await removeUnusedVersions(join(base, name), this.#options.clock.now(), this.#options.processes);
    for (const { version, reason } of removed)
      this.#options.log.info({ volume: name, version, reason }, 'removed an old version of the library mirror');
  }

  #warnOnce(message: string, fields: object): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#options.log.warn(fields, `library mirror: ${message}`);
  }
}
