import './ld-so-cache.test.js';
