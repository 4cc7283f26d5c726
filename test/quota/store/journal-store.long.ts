import './journal-store.test.js';
