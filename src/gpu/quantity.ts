/** Powers of ten: put behind the digits they are read without an error of rounding. */
const DECIMAL: Readonly<Record<string, string>> = {
  n: 'e-9',
  u: 'e-6',
  m: 'e-3',
  k: 'e3',
  M: 'e6',
  G: 'e9',
  T: 'e12',
  P: 'e15',
  E: 'e18',
};
const BINARY: Readonly<Record<string, number>> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/**
 * A Kubernetes quantity ("500m", "16Gi", "1.5", "2e3"), as a number. Null for what is none. A number is taken as it is: JSON and YAML let
 * authors leave the quotes out.
 */
export function parseQuantity(text: string | number): number | null {
  if (typeof text === 'number') return Number.isFinite(text) ? text : null;
  const parts = /^([+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20}))(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]))?$/u.exec(
    text,
  );
  if (parts === null) return null;
  const [, digits = '', exponent = '', suffix = ''] = parts;
  const number = Number(`${digits}${DECIMAL[suffix] ?? exponent}`) * (BINARY[suffix] ?? 1);
  return Number.isFinite(number) ? number : null;
}

/**
 * A Kubernetes quantity ("30", "1k", "2Ki", "3e2") as a whole number. Extended resources are whole numbers and the API
 * server writes them back in its own notation, in which 1000 is "1k". Anything else is null.
 */
export function wholeQuantity(text: string): number | null {
  const value = parseQuantity(text);
  return value !== null && Number.isSafeInteger(value) ? value : null;
}
