import { ALLOWED, type AdmissionResponse, type Review } from '../kube/admission/review.js';
import type { ClaimTemplates } from './claim-templates.js';
import { convertPod } from './pod-conversion.js';

/** Reviews new pods that ask for conversion. A dry run creates no template. */
export async function reviewPod(
  { operation, resource, subresource, object, namespace, dryRun }: Review,
  templates: Pick<ClaimTemplates, 'ensure'>,
): Promise<AdmissionResponse> {
  if (operation !== 'CREATE' || resource !== 'pods' || subresource !== '' || object === null) return ALLOWED;
  const conversion = convertPod(object);
  if (conversion.kind === 'unchanged')
    return conversion.warning === null ? ALLOWED : { allowed: true, warnings: [conversion.warning] };
  if (conversion.kind === 'refused')
    return refused(`the request cannot be converted into resource claims: ${conversion.reason}`);
  if (!dryRun)
    for (const template of conversion.templates) {
      const ensured = await templates.ensure(namespace, template);
      if (!ensured.ok) return refused(ensured.reason);
    }
  return { allowed: true, patch: conversion.patch };
}

function refused(message: string): AdmissionResponse {
  return { allowed: false, code: 422, reason: 'Invalid', message };
}
