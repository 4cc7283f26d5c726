import './honest-programs.test.js';
