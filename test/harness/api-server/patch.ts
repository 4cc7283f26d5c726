import { ApiFailure, badRequest } from './api-failure.js';
import { isDeepEqual, isJsonObject, type Json } from './kube-object.js';

/** RFC 7386: objects merge, null removes, everything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const merged: Record<string, unknown> = isJsonObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

/**
 * Lists that a strategic merge patch merges by entry, and the key field of the entries. A field name has the same
 * meaning everywhere here.
 */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  ports: 'containerPort',
  imagePullSecrets: 'name',
  conditions: 'type',
  ownerReferences: 'uid',
  addresses: 'type',
  taints: 'key',
  hostAliases: 'ip',
  webhooks: 'name',
  admissionChecks: 'name',
};

/** Lists of plain values that are merged as sets. */
const SETS = new Set(['finalizers']);

/**
 * Strategic merge patch, as far as the clients of this project use it: keyed lists, `$patch: delete | replace`,
 * `$deleteFromPrimitiveList/<list>`, and null for removal. Order directives are ignored.
 */
export function strategicMergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const base: Json = isJsonObject(target) && patch.$patch !== 'replace' ? target : {};
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (key === '$patch' || key.startsWith('$setElementOrder/')) continue;
    if (key.startsWith('$deleteFromPrimitiveList/')) {
      const list = key.slice('$deleteFromPrimitiveList/'.length);
      const gone = Array.isArray(value) ? value : [];
      merged[list] = listOf(merged[list]).filter((entry) => !gone.includes(entry));
    } else if (value === null) delete merged[key];
    else if (Array.isArray(value) && MERGE_KEYS[key] !== undefined)
      merged[key] = mergeList(listOf(merged[key]), value, MERGE_KEYS[key]);
    else if (Array.isArray(value) && SETS.has(key))
      merged[key] = [...new Set([...listOf(merged[key]), ...(value as unknown[])])];
    else merged[key] = strategicMergePatch(merged[key], value);
  }
  return merged;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function mergeList(target: readonly unknown[], patch: readonly unknown[], key: string): unknown[] {
  if (patch.some((entry) => isJsonObject(entry) && entry.$patch === 'replace')) {
    return patch.filter((entry) => !(isJsonObject(entry) && '$patch' in entry));
  }
  const merged = [...target];
  for (const entry of patch) {
    if (!isJsonObject(entry)) throw badRequest(`strategic merge patch: entries need the field ${key}`);
    const at = merged.findIndex((other) => isJsonObject(other) && other[key] === entry[key]);
    if (entry.$patch === 'delete') {
      if (at >= 0) merged.splice(at, 1);
    } else if (at >= 0) merged[at] = strategicMergePatch(merged[at], entry);
    else merged.push(strategicMergePatch({}, entry));
  }
  return merged;
}

/** RFC 6902, all operations. A failed `test` or a path that leads nowhere is 422, as the real server answers. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest('json patch: not an array of operations');
  let document: unknown = structuredClone(target);
  for (const operation of patch as unknown[]) {
    if (!isJsonObject(operation) || typeof operation.path !== 'string')
      throw badRequest('json patch: not an operation');
    document = apply(document, operation, pointer(operation.path));
  }
  return document;
}

function apply(document: unknown, operation: Json, path: readonly string[]): unknown {
  const from = typeof operation.from === 'string' ? pointer(operation.from) : [];
  switch (operation.op) {
    case 'add':
      return put(document, path, structuredClone(operation.value), 'add');
    case 'replace':
      read(document, path);
      return put(document, path, structuredClone(operation.value), 'replace');
    case 'remove':
      return remove(document, path);
    case 'move': {
      const value = read(document, from);
      return put(remove(document, from), path, value, 'add');
    }
    case 'copy':
      return put(document, path, structuredClone(read(document, from)), 'add');
    case 'test':
      if (!isDeepEqual(read(document, path), operation.value))
        throw unprocessable(`testing value ${path.join('/')} failed`);
      return document;
    default:
      throw badRequest(`json patch: unknown operation ${String(operation.op)}`);
  }
}

function pointer(text: string): string[] {
  if (text === '') return [];
  return text
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function unprocessable(message: string): ApiFailure {
  return new ApiFailure(422, 'Invalid', `the server rejected our request due to an error in our request: ${message}`);
}

function read(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const step of path) {
    const inside: unknown = Array.isArray(value)
      ? (value as unknown[])[Number(step)]
      : isJsonObject(value)
        ? value[step]
        : undefined;
    if (inside === undefined) throw unprocessable(`nothing at ${path.join('/')}`);
    value = inside;
  }
  return value;
}

function put(document: unknown, path: readonly string[], value: unknown, how: 'add' | 'replace'): unknown {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) {
    const list = parent as unknown[];
    const index = last === '-' ? list.length : Number(last);
    if (!Number.isInteger(index) || index < 0 || index > list.length) throw unprocessable(`no index ${last}`);
    list.splice(index, how === 'replace' ? 1 : 0, value);
  } else (parent as Record<string, unknown>)[last] = value;
  return document;
}

function remove(document: unknown, path: readonly string[]): unknown {
  const last = path.at(-1);
  if (last === undefined) return null;
  read(document, path);
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) (parent as unknown[]).splice(Number(last), 1);
  else delete (parent as Record<string, unknown>)[last];
  return document;
}
