import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** An alert of a file of Prometheus' rules. */
export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export function alertsOf(file: string): Alert[] {
  return (parse(readFileSync(file, 'utf8')) as { groups: { rules: Alert[] }[] }).groups.flatMap(({ rules }) => rules);
}

/** Every expression of a Grafana dashboard. */
export function expressionsOf(file: string): string[] {
  return expressions(JSON.parse(readFileSync(file, 'utf8')));
}

function expressions(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(expressions);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, entry]) =>
    (key === 'expr' || key === 'query') && typeof entry === 'string' ? [entry] : expressions(entry),
  );
}

/** The annotations of an alert that fires with these labels and this value. */
export function rendered(
  annotations: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
  value: string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(annotations).map(([name, text]) => [
      name,
      text
        .replaceAll(/\{\{ \$labels\.(\w+) \}\}/gu, (_, label: string) => labels[label] ?? '')
        .replaceAll(/\{\{ \$value \| \w+ \}\}|\{\{ \$value \}\}/gu, value),
    ]),
  );
}
