import type { Json } from './kube-object.js';
import { resourceName, type ResourceType } from './resource-type.js';

/** A refusal in the API server's own form; its `status` is the body that clients see. */
export class ApiFailure extends Error {
  readonly code: number;
  readonly status: Json;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: number,
    reason: string,
    message: string,
    details?: Json,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.status = statusObject(code, reason, message, details);
  }
}

export function statusObject(code: number, reason: string, message: string, details?: Json): Json {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
}

export function notFound(type: ResourceType, name: string): ApiFailure {
  return new ApiFailure(404, 'NotFound', `${resourceName(type)} "${name}" not found`, detailsOf(type, name));
}

export function alreadyExists(type: ResourceType, name: string): ApiFailure {
  return new ApiFailure(409, 'AlreadyExists', `${resourceName(type)} "${name}" already exists`, detailsOf(type, name));
}

export function conflict(type: ResourceType, name: string, why: string): ApiFailure {
  return new ApiFailure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${resourceName(type)} "${name}": ${why}`,
    detailsOf(type, name),
  );
}

export const MODIFIED_MEANWHILE =
  'the object has been modified; please apply your changes to the latest version and try again';

export function invalid(type: ResourceType, name: string, field: string, problem: string): ApiFailure {
  const causes = [{ reason: 'FieldValueInvalid', message: problem, field }];
  return new ApiFailure(422, 'Invalid', `${type.kind} "${name}" is invalid: ${field}: ${problem}`, {
    ...detailsOf(type, name),
    causes,
  });
}

export function badRequest(message: string): ApiFailure {
  return new ApiFailure(400, 'BadRequest', message);
}

export function expired(message: string): ApiFailure {
  return new ApiFailure(410, 'Expired', message);
}

/** The client has seen a newer state than this server (another replica, or a restored backup). */
export function tooNew(asked: number, current: number): ApiFailure {
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`;
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
  return new ApiFailure(504, 'Timeout', message, { causes, retryAfterSeconds: 1 }, { 'retry-after': '1' });
}

function detailsOf(type: ResourceType, name: string): Json {
  return { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural };
}
