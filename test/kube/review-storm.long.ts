import './review-storm.test.js';
