const LIMITS = 'limits.';

/** The name under which the limits of pods on a resource are shared, beside their requests: `limits.cpu`. */
export function limitsOn(resource: string): string {
  return LIMITS + resource;
}

/** The resource whose limits a name stands for; null for any other name. */
export function limitedResource(name: string): string | null {
  return name.startsWith(LIMITS) ? name.slice(LIMITS.length) : null;
}
