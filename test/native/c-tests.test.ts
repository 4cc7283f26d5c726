import { testPrograms } from './c-programs.js';

testPrograms('the C tests pass', ['EXCEPT=*_long']);
