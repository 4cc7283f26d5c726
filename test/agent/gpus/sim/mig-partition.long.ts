import './mig-partition.test.js';
