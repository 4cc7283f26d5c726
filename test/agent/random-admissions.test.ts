import { testRandomAdmissions } from './random-admissions.js';

testRandomAdmissions(120);
