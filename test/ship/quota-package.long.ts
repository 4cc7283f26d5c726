import './quota-package.test.js';
