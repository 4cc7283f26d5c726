import './histories.test.js';
