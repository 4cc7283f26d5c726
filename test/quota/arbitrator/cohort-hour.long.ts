import './cohort-hour.test.js';
