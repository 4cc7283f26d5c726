import type { KubeObject } from '../object.js';

/** The request of an AdmissionReview. */
export interface Review {
  readonly uid: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  /** API group and plural of the reviewed resource. */
  readonly apiGroup: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly dryRun: boolean;
  /** Null for a deletion. */
  readonly object: KubeObject | null;
  /** Null for a creation. */
  readonly oldObject: KubeObject | null;
  readonly user: string;
}

/** The response to a review. */
export interface AdmissionResponse {
  readonly allowed: boolean;
  /** HTTP status and reason of a refusal. */
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly warnings?: readonly string[];
  /** JSON patch of the object, from mutating webhooks. */
  readonly patch?: readonly object[];
}

export const ALLOWED: AdmissionResponse = { allowed: true };

interface ReviewObject {
  readonly kind?: unknown;
  readonly apiVersion?: unknown;
  readonly request?: {
    readonly uid?: unknown;
    readonly operation?: unknown;
    readonly resource?: { readonly group?: unknown; readonly resource?: unknown };
    readonly subResource?: unknown;
    readonly namespace?: unknown;
    readonly name?: unknown;
    readonly dryRun?: unknown;
    readonly object?: unknown;
    readonly oldObject?: unknown;
    readonly userInfo?: { readonly username?: unknown };
  };
}

/** Reads an AdmissionReview, or returns why the body is not one. */
export function readReview(
  text: string,
): { readonly ok: true; readonly review: Review } | { readonly ok: false; readonly reason: string } {
  let parsed: ReviewObject;
  try {
    parsed = JSON.parse(text) as ReviewObject;
  } catch {
    return { ok: false, reason: 'not JSON' };
  }
  // A null where an object is expected counts as missing.
  const request = (parsed as ReviewObject | null)?.request ?? undefined;
  if (parsed?.kind !== 'AdmissionReview' || parsed.apiVersion !== 'admission.k8s.io/v1')
    return { ok: false, reason: 'not an AdmissionReview of admission.k8s.io/v1' };
  const { operation } = request ?? {};
  if (
    request === undefined ||
    typeof request.uid !== 'string' ||
    (operation !== 'CREATE' && operation !== 'UPDATE' && operation !== 'DELETE' && operation !== 'CONNECT')
  ) {
    return { ok: false, reason: 'no request with uid and operation' };
  }
  const word = (value: unknown): string => (typeof value === 'string' ? value : '');
  const object = (value: unknown): KubeObject | null => (typeof value === 'object' && value !== null ? value : null);
  return {
    ok: true,
    review: {
      uid: request.uid,
      operation,
      apiGroup: word(request.resource?.group),
      resource: word(request.resource?.resource),
      subresource: word(request.subResource),
      namespace: word(request.namespace),
      name: word(request.name),
      dryRun: request.dryRun === true,
      object: object(request.object),
      oldObject: object(request.oldObject),
      user: word(request.userInfo?.username),
    },
  };
}

/** Writes the AdmissionReview with the response. */
export function reviewAnswer(
  uid: string,
  { allowed, code, reason, message, warnings, patch }: AdmissionResponse,
): unknown {
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed,
      ...(allowed ? {} : { status: { code: code ?? 403, reason: reason ?? 'Forbidden', message: message ?? '' } }),
      ...(warnings === undefined || warnings.length === 0 ? {} : { warnings }),
      ...(patch === undefined
        ? {}
        : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
    },
  };
}

/** The response to an object that cannot be read: 422 Invalid. */
export function invalid({ code, reason }: { readonly code: string; readonly reason: string }): AdmissionResponse {
  return { allowed: false, code: 422, reason: 'Invalid', message: `${code}: ${reason}` };
}
