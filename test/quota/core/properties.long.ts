import './properties.test.js';
