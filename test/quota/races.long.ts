import './races.test.js';
