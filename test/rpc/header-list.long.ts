import './header-list.test.js';
