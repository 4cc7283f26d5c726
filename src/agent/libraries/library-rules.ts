import type { Architecture } from './architecture.js';
import { minimumLinux } from './elf.js';
import type { HostLibrary } from './inventory.js';

/**
 * Libraries that every GL implementation has under the same names; a mirror only takes the driver's own and glvnd's.
 */
const SHARED_GL_NAME = /^lib(EGL|GLESv1_CM|GLESv2|GL)\.so/;
const NVIDIA_GL = /^lib(nvidia-e?glcore|GLdispatch)\.so/;

/** Drivers shipped libnvidia-tls twice; the one for kernels with thread-local storage requires 2.3.99 or later. */
const TLS_LIBRARY = /^libnvidia-tls\.so/;
const MIN_TLS_LINUX = [2, 3, 99] as const;

export interface RuleContext {
  readonly architecture: Architecture;
  /** SONAMEs that a control library interposes. */
  readonly controlled: readonly string[];
  readonly candidates: readonly HostLibrary[];
}

/** Whether a volume's list of prefixes covers the library's name in the cache or its file name. */
export function isListed(library: HostLibrary, beginnings: readonly string[]): boolean {
  return beginnings.some(
    (beginning) => library.name.startsWith(beginning) || library.facts.soname?.startsWith(beginning) === true,
  );
}

/** Why a listed library must not be in a mirror, or null if it may. */
export function reasonToLeaveOut(library: HostLibrary, context: RuleContext): string | null {
  const { facts, fileName } = library;
  const { soname } = facts;
  if (soname !== null && !isFileName(soname)) return `its SONAME is not a file name: ${JSON.stringify(soname)}`;
  if (!belongsToNode(facts.architecture, context.architecture))
    return `it is for ${facts.architecture}, the node for ${context.architecture}`;
  if (facts.architecture !== context.architecture && bearsNameOf(library, context.controlled)) {
    return `there is no ${facts.architecture} control library: a program that loads it would get the whole GPU`;
  }
  if (SHARED_GL_NAME.test(fileName) && !facts.needed.some((needed) => NVIDIA_GL.test(needed)))
    return 'it belongs to another GL implementation';
  if (TLS_LIBRARY.test(fileName) && isOlder(minimumLinux(facts), MIN_TLS_LINUX))
    return 'it is the variant for kernels before 2.3.99';
  const current = ofDriverInUse(library, context);
  if (current !== null) return `it is left over from another driver, ${current} is in use`;
  return null;
}

/** Further names under which programs load a library: its SONAME, the name without version, and GLX's fallback. */
export function linkNames(fileName: string, soname: string | null): string[] {
  const plain = /^(.+?\.so)\./.exec(fileName)?.[1];
  const names = [soname, plain ?? null, /^libGLX_nvidia\.so/.test(fileName) ? 'libGLX_indirect.so.0' : null];
  return [...new Set(names)].filter((name): name is string => name !== null && name !== fileName);
}

/**
 * The version in a file name: `580.95.05` for `libcuda.so.580.95.05`; null if the name has only the SONAME's number.
 */
export function driverVersionOf(fileName: string): string | null {
  const version = /\.so\.(\d+(?:\.\d+)*)$/.exec(fileName)?.[1];
  return version === undefined || version === '1' ? null : version;
}

/** A node runs programs of its own architecture and of the matching 32-bit architecture. */
function belongsToNode(library: Architecture, node: Architecture): boolean {
  if (library === node) return true;
  if (node === 'x86-64') return library === 'i386' || library === 'x32';
  return node === 'aarch64' && library === 'arm';
}

/** Whether a program that loads one of these libraries, with or without version, may get this one. */
function bearsNameOf(library: HostLibrary, sonames: readonly string[]): boolean {
  const names = [library.name, library.fileName, library.facts.soname];
  return sonames.some((soname) => {
    const plain = soname.replace(/\.so\..*$/, '.so');
    return names.some((name) => name === plain || name?.startsWith(`${plain}.`) === true);
  });
}

function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0');
}

function isOlder(version: readonly number[] | null, limit: readonly number[]): boolean {
  if (version === null) return false;
  for (const [index, part] of limit.entries()) {
    const difference = (version[index] ?? 0) - part;
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/**
 * The version of the driver in use if this library belongs to another version and its counterpart of the right version
 * exists; else null.
 */
function ofDriverInUse(library: HostLibrary, { candidates, architecture }: RuleContext): string | null {
  const own = driverVersionOf(library.fileName);
  if (own === null) return null;
  const driver = candidates.find(
    (candidate) => candidate.facts.soname === 'libcuda.so.1' && candidate.facts.architecture === architecture,
  );
  const current = driver === undefined ? null : driverVersionOf(driver.fileName);
  if (current === null || current === own) return null;
  const twin = library.fileName.slice(0, -own.length) + current;
  return candidates.some(
    (candidate) => candidate.fileName === twin && candidate.facts.architecture === library.facts.architecture,
  )
    ? current
    : null;
}
