/*
 * The functions that libcuda.so.1 exports, by their symbol names: every variant of a call that changed its layout (_v2,
 * _v3), and of a call with a variant for the per-thread default stream (_ptsz for asynchronous calls, _ptds for
 * synchronous ones). Requires the types of cuda_abi.h (or of cuda.h: a test includes this file after cuda.h, so that
 * the compiler compares every prototype).
 */
#ifndef CUDA_FUNCTIONS_H
#define CUDA_FUNCTIONS_H

#define CUDA_FUNCTION(since, name, symbol, stream, parameters) CUresult symbol parameters;
#include "cuda_calls.def"

#endif
