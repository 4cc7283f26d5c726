const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Why Kubernetes would refuse this label, or null. One invalid label makes it refuse the whole write. */
export function labelProblem(key: string, value: string): string | null {
  const slash = key.indexOf('/');
  const [prefix, name] = slash < 0 ? [null, key] : [key.slice(0, slash), key.slice(slash + 1)];
  if (!NAME.test(name))
    return `"${name}" is not a valid label name: expected up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends`;
  if (prefix !== null && (prefix.length > 253 || !PREFIX.test(prefix)))
    return `"${prefix}" is not a valid label prefix: it must be a DNS name in lower case`;
  if (value !== '' && !NAME.test(value))
    return `"${value}" is not a valid label value: expected up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends`;
  return null;
}
