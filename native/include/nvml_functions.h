/*
 * The functions that libnvidia-ml.so.1 exports, by their symbol names, as far as they are simulated or hooked. Requires
 * the types of nvml_abi.h (or of nvml.h: a test includes this file after nvml.h, so that the compiler compares every
 * prototype).
 */
#ifndef NVML_FUNCTIONS_H
#define NVML_FUNCTIONS_H

#define NVML_FUNCTION(type, symbol, parameters) type symbol parameters;
#include "nvml_calls.def"

#endif
