import './arbitrator.test.js';
