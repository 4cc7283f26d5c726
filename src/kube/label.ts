const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Says why Kubernetes would refuse this label, or null when it takes it. One bad label makes it refuse all that come
 * with it.
 */
export function labelProblem(key: string, value: string): string | null {
  const slash = key.indexOf('/');
  const [prefix, name] = slash < 0 ? [null, key] : [key.slice(0, slash), key.slice(slash + 1)];
  if (!NAME.test(name))
    return `"${name}" is no label name: up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends`;
  if (prefix !== null && (prefix.length > 253 || !PREFIX.test(prefix)))
    return `"${prefix}" is no label prefix: it has to be a DNS name in lower case`;
  if (value !== '' && !NAME.test(value))
    return `"${value}" is no label value: up to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends`;
  return null;
}
