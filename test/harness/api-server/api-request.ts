import type { IncomingMessage } from 'node:http';
import { ApiFailure, badRequest } from './api-failure.js';
import { isJsonObject, type Json } from './kube-object.js';
import { groupPath, type ResourceType } from './resource-type.js';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

/** A parsed request to the API server. */
export interface ApiRequest {
  readonly verb: Verb;
  readonly type: ResourceType;
  /** Null: all namespaces, or a resource without namespaces. */
  readonly namespace: string | null;
  /** Null for the collection. */
  readonly name: string | null;
  readonly subresource: string;
  readonly query: URLSearchParams;
  readonly dryRun: boolean;
}

/** Reads method and URL; null where the path names no known resource. */
export function readRequest(types: readonly ResourceType[], method: string, url: URL): ApiRequest | null {
  for (const type of types) {
    const prefix = `${groupPath(type)}/`;
    if (!url.pathname.startsWith(prefix)) continue;
    const steps = url.pathname.slice(prefix.length).split('/').map(decodeURIComponent);
    const inNamespace = steps[0] === 'namespaces' && steps.length > 2 && steps[2] === type.plural;
    if (!inNamespace && steps[0] !== type.plural) continue;
    // A path to a resource in a namespace does not address the namespace object.
    if (
      !inNamespace &&
      steps.length > 2 &&
      types.some((other) => other.namespaced && other.group === type.group && other.plural === steps[2]) &&
      type.kind === 'Namespace'
    )
      continue;
    if (inNamespace && !type.namespaced) continue;
    const [namespace, rest] = inNamespace ? [steps[1] ?? null, steps.slice(3)] : [null, steps.slice(1)];
    const [name = null, ...subresource] = rest;
    const verb = verbOf(method, name, url.searchParams);
    return {
      verb,
      type,
      namespace,
      name,
      subresource: subresource.join('/'),
      query: url.searchParams,
      dryRun: url.searchParams.get('dryRun') === 'All',
    };
  }
  return null;
}

function verbOf(method: string, name: string | null, query: URLSearchParams): Verb {
  const watched = ['1', 'true'].includes(query.get('watch') ?? '');
  switch (method) {
    case 'GET':
    case 'HEAD':
      return watched ? 'watch' : name === null ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === null ? 'deletecollection' : 'delete';
    default:
      throw new ApiFailure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
  }
}

const MAX_BODY_BYTES = 3 * 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES)
      throw new ApiFailure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export function parseBody(text: string): unknown {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('the object provided is unrecognized: json parse error');
  }
}

export function parseObject(text: string): Json {
  const body = parseBody(text);
  if (!isJsonObject(body)) throw badRequest('the object provided is unrecognized: not an object');
  return body;
}
