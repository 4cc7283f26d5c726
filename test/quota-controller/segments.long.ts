import './segments.test.js';
