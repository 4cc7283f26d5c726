/** The expressions of the policy that restricts priority and memory class to some namespaces, without a cluster. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Environment } from '@marcbachmann/cel-js';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';

const path = fileURLToPath(new URL('../../../etc/admission/classes.yaml', import.meta.url));
const { spec } = parseAllDocuments(readFileSync(path, 'utf8'))[0]?.toJS() as {
  readonly spec: {
    readonly failurePolicy: string;
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly validations: readonly { readonly expression: string; readonly message: string }[];
  };
};
const language = new Environment({ unlistedVariablesAreDyn: true });
type Texts = Readonly<Record<string, string>>;

/** The reason for a refusal; null where the object is admitted. `before`: annotations of what it replaces. */
function refusal(annotations: Texts, labels: Texts = {}, before: Texts | null = null): string | null {
  const context: Record<string, unknown> = {
    request: { operation: before === null ? 'CREATE' : 'UPDATE' },
    object: { metadata: { annotations } },
    oldObject: before === null ? null : { metadata: { annotations: before } },
    namespaceObject: { metadata: { labels } },
  };
  const evaluate = (expression: string): unknown => language.evaluate(expression, context);
  context.variables = Object.fromEntries(spec.variables.map((one) => [one.name, evaluate(one.expression)]));
  return spec.validations.find(({ expression }) => evaluate(expression) !== true)?.message ?? null;
}

for (const [annotation, word, label] of [
  ['tencent.com/vcuda-priority', 'high', 'tencent.com/vcuda-high-priority'],
  ['tencent.com/vcuda-memory-oversubscribe', 'low', 'tencent.com/vcuda-low-memory'],
] as const)
  test(`${annotation}: ${word} needs a label of the namespace`, (t) => {
    for (const value of [
      word,
      `serve=${word},batch=normal`,
      `batch=normal, serve=${word}`,
      ` ${word} `,
      `a=\t${word}`,
    ]) {
      const asks = { [annotation]: value };
      t.match(refusal(asks), new RegExp(`needs the label ${label}=allowed`, 'u'), value);
      t.match(refusal(asks, { [label]: 'no' }), /needs the label/u, value);
      t.equal(refusal(asks, { [label]: 'allowed' }), null, value);
      t.equal(refusal(asks, {}, asks), null, 'an object keeps what it has');
      t.match(refusal(asks, {}, { [annotation]: 'normal' }), /needs the label/u, 'and does not raise it');
    }
    t.equal(refusal({ [annotation]: 'normal' }), null);
    t.equal(refusal({}), null);
    t.equal(spec.failurePolicy, 'Fail');
    t.end();
  });
