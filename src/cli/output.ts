import { InvalidArgumentError, Option } from 'commander';

/** The value of `-o`: tables for people, documents for programs. */
export type Output = 'table' | 'wide' | 'json' | 'yaml' | JsonPathOutput;

/** The format `jsonpath=TEMPLATE`. */
type JsonPathOutput = `jsonpath=${string}`;

const OUTPUTS: readonly Output[] = ['table', 'wide', 'json', 'yaml'];
const JSON_PATH = 'jsonpath=';

/** Whether the output is a document for programs. */
export function isDocument(output: string): boolean {
  return output === 'json' || output === 'yaml' || isJsonPath(output);
}

function isJsonPath(output: string): output is JsonPathOutput {
  return output.startsWith(JSON_PATH);
}

/**
 * The `--output` option of every command that prints an answer. `text`, the earlier name of `table`, stays valid. `own`
 * is a format that only this command has.
 */
export function outputOption(own?: { readonly format: string; readonly meaning: string }): Option {
  const formats = own === undefined ? OUTPUTS : [...OUTPUTS, own.format];
  const more = own === undefined ? '' : `, or ${own.format} (${own.meaning})`;
  return new Option('-o, --output <format>', `table, wide (more columns), json, yaml, jsonpath=TEMPLATE${more}`)
    .choices(formats)
    .default('table')
    .argParser((value: string): string => {
      if (isJsonPath(value)) return value;
      const output = formats.find((known) => known === (value === 'text' ? 'table' : value));
      if (output === undefined) throw new InvalidArgumentError(`Expected ${formats.join(', ')}, or jsonpath={...}.`);
      return output;
    });
}

/** One answer in all output formats; only the requested format is computed. */
export interface Answer {
  readonly document: () => unknown;
  readonly table: () => string | Promise<string>;
  /** Default: `table`. */
  readonly wide?: () => string | Promise<string>;
}

export async function print(output: Output, { document, table, wide = table }: Answer): Promise<void> {
  if (isJsonPath(output)) {
    const { fillJsonPath } = await import('./json-path.js');
    const value = await document();
    // As in a list of Kubernetes.
    const root = Array.isArray(value) ? { items: value as readonly unknown[] } : value;
    process.stdout.write(fillJsonPath(output.slice(JSON_PATH.length), root));
    return;
  }
  switch (output) {
    case 'table':
      process.stdout.write(await table());
      return;
    case 'wide':
      process.stdout.write(await wide());
      return;
    case 'json':
      process.stdout.write(`${JSON.stringify(await document(), null, 2)}\n`);
      return;
    case 'yaml':
      process.stdout.write(await yaml(await document()));
  }
}

/** Prints one item of several: a line of JSON, or a YAML document with its separator. */
export async function printItem(output: Output, answer: Answer): Promise<void> {
  if (output === 'json') process.stdout.write(`${JSON.stringify(await answer.document())}\n`);
  else if (output === 'yaml') process.stdout.write(`---\n${await yaml(await answer.document())}`);
  else await print(output, answer);
}

/** Loads the library only for YAML output: loading takes a tenth of the time in which a command prints its help. */
async function yaml(document: unknown): Promise<string> {
  const { stringify } = await import('./yaml.js');
  return stringify(document);
}
