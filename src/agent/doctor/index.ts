export type { Diagnosis } from './diagnosis.js';
