import './silent-watches.test.js';
