import './lost-answers.test.js';
