import { readNode } from '../kube/node.js';
import type { ExtenderArguments } from './arguments.js';
import { ClusterNode } from '../cluster/placement/node.js';
import { valueAt } from './json-slices.js';
import { NodeShapes } from '../cluster/node-shape.js';

/** Simulators ask about a few kinds of nodes. Further ones are refused like unknown names. */
const MOST_TEMPLATES = 64;
/** A node with its images and conditions has some 20 KiB. */
const MOST_BYTES = 2 << 20;

/** Templates have no place in tables that are indexed by node. */
const NO_SLOT = -1;

/**
 * The nodes of a request that do not exist, by name: nodes that an autoscaler's simulator builds from the template of a
 * node group. They are read from the request, and nothing runs on them.
 */
export function templateNodes(
  { nodes: given }: ExtenderArguments,
  existing: { has(name: string): boolean },
): ReadonlyMap<string, ClusterNode> {
  const templates = new Map<string, ClusterNode>();
  if (given === null) return templates;
  const shapes = new NodeShapes();
  let bytes = 0;
  for (const { name, start, end } of given.nodes) {
    if (name === '' || existing.has(name)) continue;
    bytes += end - start;
    if (templates.size >= MOST_TEMPLATES || bytes > MOST_BYTES) break;
    const node = readNode(valueAt(given.body, start, end));
    if (node !== null) templates.set(name, new ClusterNode(NO_SLOT, shapes.readTemplate(node)));
  }
  return templates;
}
