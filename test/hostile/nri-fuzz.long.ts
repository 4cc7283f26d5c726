import './nri-fuzz.test.js';
