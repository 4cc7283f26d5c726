import { createHash } from 'node:crypto';
import { libraryDirectory, type Architecture } from './architecture.js';
import type { HostFile, HostInventory, HostLibrary } from './inventory.js';
import { driverVersionOf, isListed, linkNames, reasonToLeaveOut } from './library-rules.js';
import type { VolumeDescription } from './volume-config.js';

/** A library of this project that interposes one of the driver's. */
export interface ControlLibrary extends HostFile {
  /** SONAME of the interposed library: `libcuda.so.1`. */
  readonly soname: string;
  /** Name under which it loads the interposed library: `libcuda-origin.so.1`. */
  readonly originName: string;
  readonly architecture: Architecture;
  /** The names that programs find in it: every call that this project knows. */
  readonly exports: ReadonlySet<string>;
}

/** One entry of the new directory; paths are relative to it. */
export type MirrorStep =
  | { readonly kind: 'directory'; readonly to: string; readonly reason: string }
  /** Hard link to a file of the host, or a copy if that is on another file system. */
  | { readonly kind: 'link'; readonly to: string; readonly from: HostFile; readonly reason: string }
  /** Copy of one of this project's own files, in which programs do not find the exports that `without` names. */
  | {
      readonly kind: 'copy';
      readonly to: string;
      readonly from: HostFile;
      readonly without?: readonly string[];
      readonly reason: string;
    }
  /** Symbolic link to a name in the same directory. */
  | { readonly kind: 'symlink'; readonly to: string; readonly target: string; readonly reason: string };

export interface MirrorPlan {
  /**
   * Name of the version: the driver's version and a digest of the mirror's content. The same host always gives the same
   * name.
   */
  readonly version: string;
  /** Such as `580.95.05`; null if the name of libcuda has no version. */
  readonly driverVersion: string | null;
  readonly steps: readonly MirrorStep[];
  /** Listed files of the host that are not taken. */
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[];
  /** Files that volume.conf lists and the host lacks. */
  readonly missing: readonly string[];
}

export type MirrorPlanResult =
  | { readonly ok: true; readonly plan: MirrorPlan }
  | { readonly ok: false; readonly code: 'no-libcuda' | 'no-control-library'; readonly reason: string };

export interface MirrorRequest {
  readonly volume: VolumeDescription;
  readonly inventory: HostInventory;
  /** Architecture of the node's 64-bit programs. */
  readonly architecture: Architecture;
  /** Control libraries of the mirror; null for a mirror with the driver's own libraries. */
  readonly controls: readonly ControlLibrary[] | null;
  /** This project's own files that volume.conf may list, by their name there: `gpu-client`, `libcuda-control.so`. */
  readonly ownFiles: ReadonlyMap<string, HostFile>;
}

const DRIVER_LIBRARY = 'libcuda.so.1';

/** Plans the content of one volume's mirror. Changes nothing; `applyMirror` executes the {@link MirrorStep}s. */
export function planMirror(request: MirrorRequest): MirrorPlanResult {
  const { volume, inventory, architecture } = request;
  const controls = request.controls ?? [];
  const chosen = chooseLibraries(request);
  const driver = chosen.taken.find(
    (library) => library.facts.soname === DRIVER_LIBRARY && library.facts.architecture === architecture,
  );
  if (driver === undefined && volume.libraries.some((listed) => DRIVER_LIBRARY.startsWith(listed))) {
    const where =
      inventory.source === 'ld.so.cache' ? "in the host's ld.so.cache" : "in the host's library directories";
    return {
      ok: false,
      code: 'no-libcuda',
      reason: `no ${DRIVER_LIBRARY} for ${architecture} ${where}: is the NVIDIA driver installed on this node?`,
    };
  }

  const layout = new Layout();
  for (const control of controls) {
    const origin = chosen.taken.find((library) => isBehind(library, control));
    if (origin !== undefined) layout.interpose(control, origin);
  }
  for (const library of chosen.taken) {
    if (!controls.some((control) => isBehind(library, control)))
      layout.addLibrary(library, chosen.reasons.get(library.path) ?? 'volume.conf lists it');
  }
  const uncontrolled =
    request.controls !== null && driver !== undefined && !controls.some((control) => isBehind(driver, control));
  if (uncontrolled)
    return {
      ok: false,
      code: 'no-control-library',
      reason: `no control library for ${DRIVER_LIBRARY} on ${architecture}: containers would get the whole GPU`,
    };

  const missing = volume.libraries.filter(
    (listed) =>
      !layout.addOwn(listed, 'lib64', request.ownFiles) && !chosen.taken.some((library) => isListed(library, [listed])),
  );
  for (const name of volume.binaries) {
    const binary = inventory.binaries.find((candidate) => candidate.name === name);
    if (layout.addOwn(name, 'bin', request.ownFiles)) continue;
    if (binary === undefined) missing.push(name);
    else layout.addBinary(name, binary);
  }
  const driverVersion = driver === undefined ? null : driverVersionOf(driver.fileName);
  const leftOut = [...chosen.leftOut, ...layout.leftOut, ...inventory.unreadable];
  return {
    ok: true,
    plan: { version: versionName(driverVersion, layout.steps), driverVersion, steps: layout.steps, leftOut, missing },
  };
}

const isBehind = (library: HostLibrary, control: ControlLibrary): boolean =>
  library.facts.soname === control.soname && library.facts.architecture === control.architecture;

interface Choice {
  readonly taken: readonly HostLibrary[];
  /** Why a library is taken that volume.conf does not list, by path. */
  readonly reasons: ReadonlyMap<string, string>;
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[];
}

/** Listed libraries and their dependencies from the same driver; one for each name and directory. */
function chooseLibraries({ volume, inventory, architecture, controls }: MirrorRequest): Choice {
  const taken = new Map<string, HostLibrary>();
  const leftOut = new Map<string, string>();
  const reasons = new Map<string, string>();
  // A candidate whose file name is its SONAME precedes other candidates: programs load the former.
  const candidates = [...inventory.libraries].sort(
    (a, b) => Number(a.name !== a.facts.soname) - Number(b.name !== b.facts.soname),
  );
  const consider = (library: HostLibrary): void => {
    if (taken.has(library.path)) return;
    const rival = [...taken.values()].find(
      (other) =>
        other.facts.architecture === library.facts.architecture && identityName(other) === identityName(library),
    );
    const reason =
      rival !== undefined
        ? `${rival.path} has the same name and comes first`
        : reasonToLeaveOut(library, {
            architecture,
            controlled: (controls ?? []).map((control) => control.soname),
            candidates,
          });
    if (reason === null) taken.set(library.path, library);
    else leftOut.set(library.path, reason);
  };
  candidates.filter((library) => isListed(library, volume.libraries)).forEach(consider);
  // A map can grow while it is iterated, so dependencies of dependencies are reached as well.
  for (const library of taken.values()) {
    for (const needed of library.facts.needed) {
      const found = candidates.find(
        (candidate) => candidate.name === needed && candidate.facts.architecture === library.facts.architecture,
      );
      if (found === undefined || taken.has(found.path) || !needed.startsWith('libnvidia-')) continue;
      consider(found);
      if (taken.has(found.path)) reasons.set(found.path, `${library.fileName} needs it`);
    }
  }
  for (const path of taken.keys()) leftOut.delete(path);
  return { taken: [...taken.values()], reasons, leftOut: [...leftOut].map(([path, reason]) => ({ path, reason })) };
}

const identityName = (library: HostLibrary): string => library.facts.soname ?? library.fileName;

/**
 * The exports of the control library that the driver behind it lacks. Programs look for a newer call and take an older
 * one where it is missing, so they must not find it. Empty if the driver's exports are not known.
 */
const namesThatLack = (control: ControlLibrary, origin: HostLibrary): readonly string[] =>
  origin.exports === null ? [] : [...control.exports].filter((name) => origin.exports?.has(name) !== true).sort();

/** Collects steps; the first step with a name wins. */
class Layout {
  readonly steps: MirrorStep[] = [];
  readonly leftOut: { path: string; reason: string }[] = [];
  readonly #names = new Set<string>();

  /**
   * Places the control library under the driver's names, and the driver's library under its own file name and the
   * origin name.
   */
  interpose(control: ControlLibrary, origin: HostLibrary): void {
    const directory = this.#directoryOf(origin.facts.architecture);
    if (directory === null) return;
    // A driver's file name may equal the SONAME: then only the origin name is used.
    const file = origin.fileName === control.soname ? control.originName : origin.fileName;
    this.#add({
      kind: 'link',
      to: `${directory}/${file}`,
      from: origin,
      reason: `the driver's library that ${control.fileName} loads`,
    });
    this.#symlink(
      directory,
      control.originName,
      file,
      `name under which ${control.fileName} loads the driver's library`,
    );
    this.#add({
      kind: 'copy',
      to: `${directory}/${control.soname}`,
      from: control,
      without: namesThatLack(control, origin),
      reason: `stands before ${origin.fileName}`,
    });
    for (const name of [...linkNames(control.soname, control.soname), ...linkNames(origin.fileName, control.soname)]) {
      this.#symlink(directory, name, control.soname, `another name of ${control.soname}`);
    }
  }

  addLibrary(library: HostLibrary, reason: string): void {
    const directory = this.#directoryOf(library.facts.architecture);
    if (directory === null) return;
    if (!this.#add({ kind: 'link', to: `${directory}/${library.fileName}`, from: library, reason })) {
      this.leftOut.push({ path: library.path, reason: `another file of the name ${library.fileName} comes first` });
      return;
    }
    for (const name of linkNames(library.fileName, library.facts.soname))
      this.#symlink(directory, name, library.fileName, `another name of ${library.fileName}`);
  }

  addBinary(name: string, binary: HostFile): void {
    this.#directory('bin');
    this.#add({ kind: 'link', to: `bin/${name}`, from: binary, reason: 'volume.conf lists it' });
  }

  /** Adds a listed name from this project's own files; false if it is not one of them. */
  addOwn(name: string, directory: 'bin' | 'lib64', ownFiles: ReadonlyMap<string, HostFile>): boolean {
    const own = ownFiles.get(name);
    if (own === undefined) return false;
    this.#directory(directory);
    this.#add({ kind: 'copy', to: `${directory}/${name}`, from: own, reason: 'volume.conf lists it' });
    return true;
  }

  #directoryOf(architecture: Architecture): 'lib' | 'lib64' | null {
    const directory = libraryDirectory(architecture);
    if (directory !== null) this.#directory(directory);
    return directory;
  }

  #directory(name: string): void {
    this.#add({ kind: 'directory', to: name, reason: 'directory of the following entries' });
  }

  #symlink(directory: string, name: string, target: string, reason: string): void {
    if (name !== target) this.#add({ kind: 'symlink', to: `${directory}/${name}`, target, reason });
  }

  #add(step: MirrorStep): boolean {
    if (this.#names.has(step.to)) return false;
    this.#names.add(step.to);
    this.steps.push(step);
    return true;
  }
}

function versionName(driverVersion: string | null, steps: readonly MirrorStep[]): string {
  const digest = createHash('sha256');
  for (const step of steps)
    digest.update(
      JSON.stringify([
        step.kind,
        step.to,
        'from' in step ? [step.from.path, step.from.identity] : 'target' in step ? step.target : null,
        ...('without' in step ? [step.without] : []),
      ]),
    );
  return `${driverVersion ?? 'unknown'}-${digest.digest('hex').slice(0, 12)}`;
}
