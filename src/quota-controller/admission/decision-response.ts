import { ALLOWED, type AdmissionResponse } from '../../kube/admission/review.js';
import type { Decision } from '../../quota/index.js';

/** Refusal of an update whose old object differs from the one at the API server. */
export const CHANGED_MEANWHILE: AdmissionResponse = {
  allowed: false,
  code: 409,
  reason: 'Conflict',
  message: 'the object was changed by another request: read it again and retry',
};

/**
 * Converts the engine's decision into a response: a refusal becomes 403 Forbidden, a conflict with another writer 409.
 */
export function admissionResponseOf(decision: Decision): AdmissionResponse {
  const warnings = decision.warnings.map(({ code, reason }) => `${code}: ${reason}`);
  if (decision.allowed) return warnings.length === 0 ? ALLOWED : { allowed: true, warnings };
  if (decision.code === 'Conflict') return { allowed: false, code: 409, reason: 'Conflict', message: decision.message };
  const { message } = decision;
  return {
    allowed: false,
    code: 403,
    reason: 'Forbidden',
    message: message.startsWith(decision.code) ? message : `${decision.code}: ${message}`,
  };
}
