import './legacy.test.js';
