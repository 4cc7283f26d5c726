/* Loading modules: notes the GPU of each, for the kernel nodes of graphs. */
#include "control.h"
#include "driver.h"
#include "graphs.h"

static CUresult loaded(CUresult result, const CUmodule *module) {
  if (result == CUDA_SUCCESS && control_enforces()) graphs_note_module(*module);
  return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *path) {
  return loaded(driver.cuModuleLoad(module, path), module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return loaded(driver.cuModuleLoadData(module, image), module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                            void **values) {
  return loaded(driver.cuModuleLoadDataEx(module, image, count, options, values), module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  return loaded(driver.cuModuleLoadFatBinary(module, image), module);
}

CUresult cuModuleUnload(CUmodule module) {
  if (control_enforces()) graphs_forget_module(module);
  return driver.cuModuleUnload(module);
}

/* A library has one module per context, and each of its kernels one function per context. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  return loaded(driver.cuLibraryGetModule(module, library), module);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  CUmodule module;
  CUresult result = driver.cuKernelGetFunction(function, kernel);
  if (result == CUDA_SUCCESS && control_enforces() && driver.cuFuncGetModule(&module, *function) == CUDA_SUCCESS)
    graphs_note_module(module);
  return result;
}
