import './arguments.test.js';
