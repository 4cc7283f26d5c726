/* The functions that libnvml-control.so forwards: every NVML function that is known and not hooked. */
#include "forward.inc"

#define NVML_CALL(type, symbol, parameters) FORWARD symbol
#define NVML_FORWARD NVML_CALL
#define NVML_NAME(symbol) FORWARD symbol
#include "nvml_calls.def"
