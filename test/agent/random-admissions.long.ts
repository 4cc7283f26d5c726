import { testRandomAdmissions } from './random-admissions.js';

testRandomAdmissions(Number(process.env.GPU_MANAGER_ADMISSIONS ?? 800));
