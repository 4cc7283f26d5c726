import './accessibility.test.js';
