/**
 * The architecture of a shared library, as far as a mirror must keep libraries apart. `other` covers everything that no
 * NVIDIA driver of 470 or later ships.
 */
export type Architecture = 'x86-64' | 'i386' | 'x32' | 'aarch64' | 'arm' | 'ppc64le' | 'other';

/** Architecture of this process, and so of the node's 64-bit programs. */
export const NODE_ARCHITECTURE: Architecture = process.arch === 'arm64' ? 'aarch64' : 'x86-64';

/** Directory of a mirror for libraries of one architecture; null if no mirror has them. */
export function libraryDirectory(architecture: Architecture): 'lib' | 'lib64' | null {
  switch (architecture) {
    case 'x86-64':
    case 'aarch64':
    case 'ppc64le':
      return 'lib64';
    case 'i386':
    case 'x32':
    case 'arm':
      return 'lib';
    case 'other':
      return null;
  }
}
