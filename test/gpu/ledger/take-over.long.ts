import './take-over.test.js';
