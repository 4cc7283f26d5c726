import './usage-meter.test.js';
