import './whole-pods.test.js';
