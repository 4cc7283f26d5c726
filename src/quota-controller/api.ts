/** A request to the API server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below the server's base URL, encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** `application/json` unless the body is a patch. */
  readonly contentType?: string;
  readonly accept?: string;
}

/** Why a request did not do what it should. `code` is one of those below, or another that says no more than that it failed. */
export interface ApiRefusal {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
}

export type ApiAnswer = { readonly ok: true; readonly body: unknown } | ApiRefusal;

/** Codes that decisions hang on. */
export const NOT_FOUND = 'not-found';
export const CONFLICT = 'conflict';
export const ALREADY_EXISTS = 'already-exists';
export const TOO_MANY_REQUESTS = 'too-many-requests';

/** To be asked for where of an object, or of those of a watch, only the metadata is of interest. */
export const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

export const MERGE_PATCH = 'application/merge-patch+json';

/** Speaks to an API server. Never rejects. */
export interface Api {
  request(request: ApiRequest): Promise<ApiAnswer>;
}

/** A collection that is followed: what is known of it may be late, and is never mixed. */
export interface Followed<T> {
  start(): void;
  stop(): Promise<void>;
  /** True once it was listed. */
  readonly synced: boolean;
  values(): readonly T[];
  /** One object came (`before` null), changed, or went (`after` null). Returns what ends that. */
  onChange(listener: (change: { readonly before: T | null; readonly after: T | null }) => void): () => void;
}

/** Which objects to follow, and what to keep of them. */
export interface FollowOptions<T> {
  /** Of the collection. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly keep: (object: unknown) => T | null;
}

/** An API server whose collections can be followed. */
export interface WatchableApi extends Api {
  follow<T>(options: FollowOptions<T>): Followed<T>;
}

/** The API server failed where an answer was needed. */
export class ApiError extends Error {
  readonly code: string;

  constructor(what: string, { code, message }: ApiRefusal) {
    super(`${what}: ${message}`);
    this.code = code;
  }
}
