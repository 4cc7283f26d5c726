/* The functions that libcuda-control.so forwards: every driver function that is known and not hooked. */
#include "forward.inc"

#define CUDA_CALL(since, name, symbol, ...) FORWARD symbol
#define CUDA_FORWARD CUDA_CALL
#define CUDA_NAME CUDA_CALL
#include "cuda_calls.def"
