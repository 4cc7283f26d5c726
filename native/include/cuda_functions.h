/*
 * What libcuda.so.1 exports, by the names that stand in its symbol table: every variant of a call that ever changed its
 * layout (_v2, _v3) and of a call that has an own entry for the per-thread default stream (_ptsz for asynchronous
 * calls, _ptds for synchronous ones). Needs the types of cuda_abi.h (or of cuda.h: a test includes it after that one,
 * so that the compiler compares every prototype).
 */
#ifndef CUDA_FUNCTIONS_H
#define CUDA_FUNCTIONS_H

#define CUDA_FUNCTION(since, name, symbol, stream, parameters) CUresult symbol parameters;
#include "cuda_calls.def"

#endif
