import './offer.test.js';
