#include "capture.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

/* ---- modules ---- */

SIM_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  CUcontext context;
  ENTER();
  NEED(module != NULL && image != NULL);
  TRY(driver_current(&context));
  TRY(capture_forbids());
  return module_load(image, context, module);
}

SIM_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                    void **values) {
  NEED(count == 0 || (options != NULL && values != NULL));
  return cuModuleLoadData(module, image);
}

SIM_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  return cuModuleLoadData(module, image);
}

SIM_API CUresult cuModuleLoad(CUmodule *module, const char *path) {
  void *image;
  NEED(path != NULL);
  TRY(module_read_file(path, &image));
  CUresult result = cuModuleLoadData(module, image);
  free(image);
  return result;
}

SIM_API CUresult cuModuleUnload(CUmodule module) {
  ENTER();
  TRY(module_check(module));
  if (module->library) return CUDA_ERROR_NOT_PERMITTED;
  module_close(module);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
  ENTER();
  NEED(mode != NULL);
  const char *wanted = getenv("CUDA_MODULE_LOADING");
  *mode = wanted != NULL && strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER();
  NEED(function != NULL && name != NULL);
  TRY(module_check(module));
  return module_function(module, name, function);
}

SIM_API CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module) {
  ENTER();
  NEED(count != NULL);
  TRY(module_check(module));
  *count = module_functions(module, NULL, 0);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int room, CUmodule module) {
  ENTER();
  NEED(functions != NULL && room > 0);
  TRY(module_check(module));
  module_functions(module, functions, room);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
  ENTER();
  NEED(name != NULL);
  TRY(module_check(module));
  return module_global(module, name, address, size);
}

SIM_API CUresult cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned int *size, CUmodule module, const char *name) {
  ENTER();
  (void)address, (void)size, (void)name;
  TRY(module_check(module));
  return CUDA_ERROR_NOT_FOUND; /* no address fits into 32 bits */
}

/* ---- libraries, which have no context ---- */

static CUlibrary library_of(CUmodule module) {
  return (CUlibrary)module;
}

static CUmodule module_of(CUlibrary library) {
  return (CUmodule)library;
}

static CUfunction function_of(CUkernel kernel) {
  return (CUfunction)kernel;
}

SIM_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options, void **jit_values,
                                   unsigned int jit_count, CUlibraryOption *options, void **values,
                                   unsigned int count) {
  CUmodule module;
  ENTER();
  NEED(library != NULL && code != NULL);
  NEED(jit_count == 0 || (jit_options != NULL && jit_values != NULL));
  NEED(count == 0 || (options != NULL && values != NULL));
  TRY(module_load(code, NULL, &module));
  *library = library_of(module);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
                                       void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                                       void **values, unsigned int count) {
  void *image;
  NEED(path != NULL);
  TRY(module_read_file(path, &image));
  CUresult result = cuLibraryLoadData(library, image, jit_options, jit_values, jit_count, options, values, count);
  free(image);
  return result;
}

SIM_API CUresult cuLibraryUnload(CUlibrary library) {
  ENTER();
  TRY(module_check(module_of(library)));
  module_close(module_of(library));
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  CUfunction function;
  ENTER();
  NEED(kernel != NULL && name != NULL);
  TRY(module_check(module_of(library)));
  TRY(module_function(module_of(library), name, &function));
  *kernel = (CUkernel)function;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library) {
  return cuModuleGetFunctionCount(count, module_of(library));
}

SIM_API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int room, CUlibrary library) {
  return cuModuleEnumerateFunctions((CUfunction *)kernels, room, module_of(library));
}

SIM_API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  ENTER();
  NEED(module != NULL);
  TRY(module_check(module_of(library)));
  *module = module_of(library);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
  ENTER();
  NEED(name != NULL && (address != NULL || size != NULL));
  TRY(module_check(module_of(library)));
  return CUDA_ERROR_NOT_FOUND; /* libraries of the simulation contain only kernels */
}

SIM_API CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
  return cuLibraryGetGlobal(address, size, library, name);
}

SIM_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  ENTER();
  NEED(function != NULL);
  TRY(kernel_check(function_of(kernel)));
  *function = function_of(kernel);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
  ENTER();
  NEED(library != NULL);
  TRY(kernel_check(function_of(kernel)));
  *library = library_of(function_of(kernel)->module);
  return CUDA_SUCCESS;
}

/* ---- linking: the result is the first PTX or binary that is added ---- */

struct CUlinkState_st {
  void *image;
  size_t size;
};

SIM_API CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *state) {
  ENTER();
  NEED(state != NULL && (count == 0 || (options != NULL && values != NULL)));
  *state = calloc(1, sizeof **state);
  return *state == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                  unsigned int count, CUjit_option *options, void **values) {
  ENTER();
  (void)name;
  NEED(state != NULL && data != NULL && size > 0 && type < CU_JIT_NUM_INPUT_TYPES);
  NEED(count == 0 || (options != NULL && values != NULL));
  if (state->image != NULL) return CUDA_SUCCESS;
  state->image = calloc(1, size + 1);
  if (state->image == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(state->image, data, size);
  state->size = size;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                                  CUjit_option *options, void **values) {
  void *image;
  NEED(path != NULL);
  TRY(module_read_file(path, &image));
  CUresult result = cuLinkAddData_v2(state, type, image, strlen(image) + 1, path, count, options, values);
  free(image);
  return result;
}

SIM_API CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
  ENTER();
  NEED(state != NULL && image != NULL);
  if (state->image == NULL) return CUDA_ERROR_INVALID_IMAGE;
  *image = state->image;
  if (size != NULL) *size = state->size;
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLinkDestroy(CUlinkState state) {
  ENTER();
  NEED(state != NULL);
  free(state->image);
  free(state);
  return CUDA_SUCCESS;
}

SIM_API CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values, CUlinkState *state) {
  return cuLinkCreate_v2(count, options, values, state);
}

SIM_API CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                               unsigned int count, CUjit_option *options, void **values) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

SIM_API CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                               CUjit_option *options, void **values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}
