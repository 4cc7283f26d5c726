import { StartupError } from '../host/startup-error.js';
import { list } from '../kube/json.js';

type Step = { readonly key: string } | { readonly index: number } | { readonly all: true };
type Part =
  | { readonly text: string }
  | { readonly path: readonly Step[] }
  | { readonly range: readonly Step[]; readonly body: readonly Part[] };

const PART = /\{\s*(?:range\s+(?<range>[^}]+?)|(?<end>end)|"(?<literal>(?:[^"\\]|\\.)*)"|(?<path>[^}"]+?))\s*\}/gu;
const STEP = /\.?(?<key>[A-Za-z_][\w-]*)|\['(?<quoted>[^']*)'\]|\[(?<index>-?\d+)\]|\[\*\]|\.\*/gu;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/**
 * Fills a JSONPath template as kubectl does (`-o jsonpath`): text, paths such as `{.items[*].name}`, ranges from
 * `{range .items[*]}` to `{end}`, and literals such as `{"\n"}`. Filters and slices are not understood. Throws a
 * `StartupError` for a template that cannot be read.
 */
export function fillJsonPath(template: string, document: unknown): string {
  return textOf(partsOf(template), document);
}

function partsOf(template: string): readonly Part[] {
  const open: { readonly range: readonly Step[]; readonly body: Part[] }[] = [{ range: [], body: [] }];
  const add = (part: Part): void => void open.at(-1)?.body.push(part);
  let at = 0;
  for (const found of template.matchAll(PART)) {
    if (found.index > at) add({ text: plain(template.slice(at, found.index)) });
    at = found.index + found[0].length;
    const { range, end, literal, path } = found.groups ?? {};
    if (range !== undefined) open.push({ range: stepsOf(range), body: [] });
    else if (end !== undefined) {
      const ended = open.pop();
      if (ended === undefined || open.length === 0) throw problem(template, '{end} without {range}');
      add(ended);
    } else if (literal !== undefined)
      add({ text: literal.replaceAll(/\\(.)/gu, (_, char: string) => ESCAPES[char] ?? char) });
    else add({ path: stepsOf(path ?? '') });
  }
  if (at < template.length) add({ text: plain(template.slice(at)) });
  const [whole] = open;
  if (open.length !== 1 || whole === undefined) throw problem(template, '{range} without {end}');
  return whole.body;

  function plain(text: string): string {
    if (/[{}]/u.test(text)) throw problem(template, `unexpected ${text.trim()}`);
    return text;
  }

  function stepsOf(path: string): readonly Step[] {
    const steps: Step[] = [];
    const rest = path.replace(/^[$@]/u, '').replaceAll(STEP, (step: string, ...groups: readonly unknown[]) => {
      const { key, quoted, index } = groups.at(-1) as Readonly<Record<string, string | undefined>>;
      const name = key ?? quoted;
      steps.push(name !== undefined ? { key: name } : index !== undefined ? { index: Number(index) } : { all: true });
      return step.slice(step.length);
    });
    if (rest !== '' && rest !== '.') throw problem(template, `${path} is not understood`);
    return steps;
  }
}

function problem(template: string, what: string): StartupError {
  return new StartupError(
    `-o jsonpath: ${what} in ${JSON.stringify(template)}; expected paths such as {.items[*].name}, {range .items[*]}...{end}, {"\\n"}`,
  );
}

function textOf(parts: readonly Part[], value: unknown): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text;
      if ('path' in part) return found(value, part.path).map(written).join(' ');
      return found(value, part.range)
        .map((each) => textOf(part.body, each))
        .join('');
    })
    .join('');
}

/** The values at a path; none where a field is missing. */
function found(value: unknown, steps: readonly Step[]): readonly unknown[] {
  return steps.reduce<readonly unknown[]>(
    (values, step) =>
      values.flatMap((one) => {
        if (typeof one !== 'object' || one === null) return [];
        if ('all' in step) return Object.values(one) as readonly unknown[];
        if ('index' in step) return list(one).slice(step.index, step.index + 1 || undefined);
        const field = Object.hasOwn(one, step.key) ? (one as Readonly<Record<string, unknown>>)[step.key] : undefined;
        return field === undefined ? [] : [field];
      }),
    [value],
  );
}

function written(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
