/** Rendering the shipped manifests by helm and kustomize. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const CHART = join(ROOT, 'charts/gpu-manager');

export interface ShippedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

export const documents = (text: string): ShippedObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as ShippedObject | null)
    .filter((value) => value !== null);

/** Reason why a test cannot use a program, or false. */
export function missingProgram(name: string, ...args: readonly string[]): string | false {
  return spawnSync(name, args).status === 0 ? false : `${name} is not installed: run scripts/install-tools`;
}

export const noHelm = missingProgram('helm', 'version');

/** The chart names no registry; without one it renders only if nodes have the image. */
export const LOCAL_IMAGE = ['--set', 'image.local=true'] as const;

/** Several tests look at the same values. */
const rendered = new Map<string, string>();

/** What `helm template` prints for the chart with an image of the nodes, in kube-system. */
export function helmTemplate(...args: readonly string[]): string {
  const key = args.join('\n');
  const known = rendered.get(key);
  if (known !== undefined) return known;
  const release = ['template', 'gpu-manager', CHART, '--namespace', 'kube-system', ...LOCAL_IMAGE];
  const text = execFileSync('helm', [...release, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  rendered.set(key, text);
  return text;
}

/** Objects as text with fields in alphabetical order, sorted, to compare sets of them. */
export function inOrder(all: readonly unknown[]): string[] {
  const byName = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return all.map((value) => JSON.stringify(value, byName)).sort();
}
