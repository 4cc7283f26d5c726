/*
 * What libnvidia-ml.so.1 exports, by the names that stand in its symbol table, as far as it is simulated or hooked
 * here. Needs the types of nvml_abi.h (or of nvml.h: a test includes it after that one, so that the compiler compares
 * every prototype).
 */
#ifndef NVML_FUNCTIONS_H
#define NVML_FUNCTIONS_H

#define NVML_FUNCTION(type, symbol, parameters) type symbol parameters;
#include "nvml_calls.def"

#endif
