import './claim-hours.test.js';
