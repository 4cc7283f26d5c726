import { parseAllDocuments } from 'yaml';
import * as z from 'zod';
import type { GroupSpec } from '../quota/index.js';

/**
 * Maximum size of a file, slightly more than the maximum of a Kubernetes object; larger files are rejected without
 * parsing.
 */
export const MAX_FILE_BYTES = 3 << 20;

const quantity = z.union([z.string(), z.number()]);
const quantities = z.record(z.string(), quantity);

const moment = z.union([z.number(), z.string()]);

export const loan = z.strictObject({
  name: z.string(),
  to: z.string(),
  amounts: quantities,
  from: moment.optional(),
  until: moment,
});

export const grant = z.strictObject({
  name: z.string(),
  key: z.string(),
  amount: quantity,
  persons: z.number().optional(),
  from: z.union([z.number(), z.string()]).optional(),
  every: z.union([z.number(), z.string()]).optional(),
  expiresAfter: z.union([z.number(), z.string()]).optional(),
  until: z.union([z.number(), z.string()]).optional(),
  mode: z.enum(['topup', 'reset']).optional(),
  carryOver: quantity.optional(),
});

const groupFields = {
  name: z.string(),
  hard: quantities,
  mode: z.enum(['carved', 'elastic']).optional(),
  borrow: quantities.optional(),
  lend: quantities.optional(),
  grants: z.array(grant).optional(),
  loans: z.array(loan).optional(),
};

/** A group with nested children, or one that names its parent. */
interface WrittenGroup extends GroupSpec {
  readonly children?: readonly WrittenGroup[] | undefined;
}

const writtenGroup: z.ZodType<WrittenGroup> = z.strictObject({
  ...groupFields,
  parent: z.string().optional(),
  get children() {
    return z.array(writtenGroup).optional();
  },
});

const treeDocument = z.strictObject({ groups: z.array(writtenGroup) });

/** The custom resource; fields that a server adds are ignored. */
const customResource = z.object({
  kind: z.literal('BizGroupResourceQuota'),
  metadata: z.object({ name: z.string() }),
  // The engine does not use the namespaces of a group, nor what the arbitrator does for it.
  spec: z
    .strictObject({
      parentBizGroup: z.string().optional(),
      namespaceSelector: z.unknown().optional(),
      defaultFor: z.unknown().optional(),
      weight: z.unknown().optional(),
      reclaim: z.unknown().optional(),
      preemption: z.unknown().optional(),
      fromNodes: z.array(z.looseObject({ key: z.string(), min: quantity.optional() })).optional(),
      ...groupFields,
    })
    .omit({ name: true }),
});

export type ReadTree =
  | { readonly ok: true; readonly groups: readonly GroupSpec[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Reads a tree of groups from YAML: documents with `groups`, nested by `children` or flat by `parent`, or
 * BizGroupResourceQuota objects. In the result, parents come before their children.
 */
export function readTree(text: string): ReadTree {
  const read = readYaml(text);
  if (!read.ok) return read;
  const problems: string[] = [];
  const groups: GroupSpec[] = [];
  read.documents.forEach((document, index) => {
    const isResource = typeof document === 'object' && document !== null && 'kind' in document;
    const where = read.documents.length === 1 ? '' : `document ${index + 1}: `;
    const parsed = isResource ? customResource.safeParse(document) : treeDocument.safeParse(document);
    if (!parsed.success)
      problems.push(
        ...parsed.error.issues.map((issue) => `${where}${issue.path.join('.') || 'the document'}: ${issue.message}`),
      );
    else if ('groups' in parsed.data) for (const group of parsed.data.groups) flatten(group, '', groups, problems);
    else groups.push(groupOf(parsed.data));
  });
  const ordered = parentsFirst(groups, problems);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, groups: ordered };
}

/** Reads one BizGroupResourceQuota object. */
export function readGroupResource(
  document: unknown,
): { readonly ok: true; readonly group: GroupSpec } | { readonly ok: false; readonly problems: readonly string[] } {
  const parsed = customResource.safeParse(document);
  return parsed.success
    ? { ok: true, group: groupOf(parsed.data) }
    : {
        ok: false,
        problems: parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the object'}: ${issue.message}`),
      };
}

function groupOf({
  metadata,
  spec: {
    parentBizGroup,
    namespaceSelector: _namespaces,
    defaultFor: _defaults,
    weight: _weight,
    reclaim: _reclaim,
    preemption: _preemption,
    fromNodes = [],
    ...spec
  },
}: z.infer<typeof customResource>): GroupSpec {
  // Without a cluster, limits from nodes are their minimum.
  const hard = { ...spec.hard, ...Object.fromEntries(fromNodes.map(({ key, min = 0 }) => [key, min])) };
  return { ...spec, hard, name: metadata.name, parent: parentBizGroup ?? '' };
}

/** The documents of a YAML text, without empty ones. */
export function readYaml(
  text: string,
):
  | { readonly ok: true; readonly documents: readonly unknown[] }
  | { readonly ok: false; readonly problems: readonly string[] } {
  if (Buffer.byteLength(text) > MAX_FILE_BYTES) return { ok: false, problems: [`longer than ${MAX_FILE_BYTES} bytes`] };
  try {
    const parsed = parseAllDocuments(text);
    const documents = 'empty' in parsed ? [] : parsed;
    const problems = documents.flatMap(({ errors }) => errors.map(({ message }) => message.split('\n')[0] ?? message));
    if (problems.length > 0) return { ok: false, problems };
    return {
      ok: true,
      documents: documents.map((document) => document.toJS() as unknown).filter((document) => document !== null),
    };
  } catch (error) {
    // For example a recursive alias.
    return { ok: false, problems: [error instanceof Error ? error.message : String(error)] };
  }
}

function flatten({ children, ...group }: WrittenGroup, parent: string, into: GroupSpec[], problems: string[]): void {
  if (parent !== '' && group.parent !== undefined && group.parent !== parent)
    problems.push(`${group.name}: parent is ${group.parent}, but the group is nested below ${parent}`);
  into.push({ ...group, parent: parent === '' ? (group.parent ?? '') : parent });
  for (const child of children ?? []) flatten(child, group.name, into, problems);
}

function parentsFirst(groups: readonly GroupSpec[], problems: string[]): readonly GroupSpec[] {
  const byName = new Map(groups.map((group) => [group.name, group]));
  const ordered = new Set<GroupSpec>();
  for (const group of groups) {
    const line: GroupSpec[] = [];
    for (
      let at: GroupSpec | undefined = group;
      at !== undefined && !ordered.has(at);
      at = byName.get(at.parent ?? '')
    ) {
      if (line.includes(at)) {
        problems.push(
          `parents form a cycle: ${[...line.slice(line.indexOf(at)), at].map(({ name }) => name).join(' below ')}`,
        );
        break;
      }
      line.push(at);
    }
    for (const each of line.reverse()) ordered.add(each);
  }
  // Duplicates stay; the engine rejects them with a reason.
  return [...ordered, ...groups.filter((group) => !ordered.has(group))];
}
