import * as z from 'zod';

/** One mirror of volume.conf. */
export interface VolumeDescription {
  /** `nvidia` is the mirror with the control libraries; any other name is a mirror with the driver's own. */
  readonly name: string;
  /** Absolute directory; the mirror is in `<base>/<name>`. */
  readonly base: string;
  /** Names of programs, searched in the host's PATH. */
  readonly binaries: readonly string[];
  /** Prefixes of library names: `libcuda.so` also names `libcuda.so.1`. */
  readonly libraries: readonly string[];
}

export type VolumeConfigResult =
  | { readonly ok: true; readonly volumes: readonly VolumeDescription[] }
  | { readonly ok: false; readonly code: 'not-json' | 'wrong-shape'; readonly reason: string };

/** The mirror for containers with a part of a GPU. */
export const SHARED_VOLUME = 'nvidia';

const names = z
  .array(z.string().min(1))
  .nullish()
  .transform((list) => list ?? []);

/** tkestack's schema; its `mode` never had a meaning and is ignored, like unknown keys. */
const schema = z.object({
  volume: z.array(
    z.object({
      name: z.string().regex(/^[^/.][^/]*$/, 'must be the name of a directory'),
      base: z.string().startsWith('/', 'must be an absolute path'),
      components: z.object({ binaries: names, libraries: names }).nullish(),
    }),
  ),
});

/** Reads the text of a volume.conf. */
export function parseVolumeConfig(text: string): VolumeConfigResult {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { ok: false, code: 'not-json', reason: (error as SyntaxError).message };
  }
  const parsed = schema.safeParse(document);
  if (!parsed.success) return { ok: false, code: 'wrong-shape', reason: z.prettifyError(parsed.error) };
  const volumes = parsed.data.volume.map(({ name, base, components }) => ({
    name,
    base,
    binaries: components?.binaries ?? [],
    libraries: components?.libraries ?? [],
  }));
  const repeated = volumes.find(
    (volume, index) => volumes.findIndex((other) => other.name === volume.name && other.base === volume.base) !== index,
  );
  if (repeated !== undefined)
    return {
      ok: false,
      code: 'wrong-shape',
      reason: `volume ${repeated.name} under ${repeated.base} is described twice`,
    };
  return { ok: true, volumes };
}
