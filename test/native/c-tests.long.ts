import { testPrograms } from './c-programs.js';

testPrograms('the C tests of shares, and those that take long, pass', ['ONLY=*_long']);
