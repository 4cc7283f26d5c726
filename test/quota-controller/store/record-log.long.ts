import './record-log.test.js';
