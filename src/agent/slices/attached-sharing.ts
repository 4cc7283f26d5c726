import { NO_SHARING, type SliceOwner, type SliceSharing } from './ports.js';

/**
 * The sharing of slices for parts that are built before the claims: each slice belongs to one container until a source
 * is attached, which must happen before the first `onChange`.
 */
export class AttachedSharing implements SliceSharing {
  #source: SliceSharing = NO_SHARING;

  attach(source: SliceSharing): void {
    this.#source = source;
  }

  containersOf(slice: string): readonly SliceOwner[] {
    return this.#source.containersOf(slice);
  }

  claimAnnotations(slice: string): readonly ReadonlyMap<string, string>[] {
    return this.#source.claimAnnotations(slice);
  }

  onChange(listener: (slice: string) => void): () => void {
    return this.#source.onChange(listener);
  }
}
