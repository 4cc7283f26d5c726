import { isDeepStrictEqual } from 'node:util';
import { DRIVER_NAME } from '../gpu/claims/names.js';
import { readSliceConfig } from '../gpu/claims/slice-config.js';
import { ALLOWED, invalid, type AdmissionResponse, type Review } from '../kube/admission/review.js';
import { list, record, text } from '../kube/json.js';

/** Places of the opaque configuration in objects, by resource. */
const PLACES: Readonly<
  Record<string, { readonly path: readonly string[]; readonly source: 'FromClass' | 'FromClaim' }>
> = {
  resourceclaims: { path: ['spec', 'devices'], source: 'FromClaim' },
  resourceclaimtemplates: { path: ['spec', 'spec', 'devices'], source: 'FromClaim' },
  deviceclasses: { path: ['spec'], source: 'FromClass' },
};

/**
 * Reviews this driver's parameters in claims, claim templates and DeviceClasses by the rules of their preparation, so
 * that the author of an object learns of an error, and not the owner of the pod.
 */
export function reviewConfiguration({ resource, object, oldObject }: Review): AdmissionResponse {
  const place = PLACES[resource];
  if (place === undefined || object === null) return ALLOWED;
  // An object that has invalid parameters already can still be labelled and deleted.
  if (oldObject !== null && isDeepStrictEqual(oldObject.spec, object.spec)) return ALLOWED;
  const devices = place.path.reduce<unknown>((value, field) => record(value)[field], object);
  const problems = list(record(devices).config).flatMap((entry, at) => {
    const { driver, parameters } = record(record(entry).opaque);
    if (text(driver) !== DRIVER_NAME) return [];
    const read = readSliceConfig(parameters, place.source);
    return read.ok ? [] : [`${place.path.join('.')}.config[${at}].opaque.parameters: ${read.reason}`];
  });
  return problems.length === 0 ? ALLOWED : invalid({ code: 'InvalidParameters', reason: problems.join('; ') });
}
