#include "module.h"

#include "context.h"
#include "ledger.h"
#include "memory.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GLOBAL_BYTES = 4096 };

struct global {
  struct global *next;
  char *name;
  CUdeviceptr address;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule modules;

static const uint32_t ELF = 0x464c457f, FAT_BINARY = 0xba55ed50, FAT_BINARY_OLD = 0x1ee55a01, FAT_WRAPPER = 0x466243b1;

CUresult module_check(CUmodule module) {
  return module != NULL && module->magic == MODULE_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static bool is_binary(const void *image) {
  uint32_t first;
  memcpy(&first, image, sizeof first);
  return first == ELF || first == FAT_BINARY || first == FAT_BINARY_OLD || first == FAT_WRAPPER;
}

/* The next kernel name in PTX after `at`; NULL: none. */
static const char *next_entry(const char *at, size_t *length) {
  at = strstr(at, ".entry");
  if (at == NULL) return NULL;
  at += strlen(".entry");
  while (isspace((unsigned char)*at))
    at++;
  *length = 0;
  while (isalnum((unsigned char)at[*length]) || at[*length] == '_' || at[*length] == '$')
    ++*length;
  return at;
}

static bool names(const CUmodule module, const char *name) {
  size_t length, wanted = strlen(name);
  if (module->any_name) return true;
  for (const char *at = next_entry(module->text, &length); at != NULL; at = next_entry(at + length, &length))
    if (length == wanted && strncmp(at, name, length) == 0) return true;
  return false;
}

CUresult module_load(const void *image, CUcontext context, CUmodule *result) {
  bool binary = is_binary(image);
  /* PTX is text. An image that is neither PTX nor binary code is invalid. */
  if (!binary && strstr(image, ".version") == NULL && strstr(image, ".entry") == NULL) return CUDA_ERROR_INVALID_IMAGE;
  CUmodule module = calloc(1, sizeof *module);
  if (module == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  module->magic = MODULE_MAGIC;
  module->context = context;
  module->library = context == NULL;
  module->any_name = binary;
  module->text = binary ? NULL : strdup(image);
  pthread_mutex_init(&module->lock, NULL);
  if (context != NULL) {
    /* Code occupies at least one block of the GPU. */
    module->charged = SPACE_BLOCK;
    if (!sim_ledger_take(driver.machine, driver.process, context->gpu, module->charged)) {
      free(module->text);
      free(module);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  pthread_mutex_lock(&lock);
  module->next = modules;
  modules = module;
  pthread_mutex_unlock(&lock);
  *result = module;
  return CUDA_SUCCESS;
}

static void free_module(CUmodule module) {
  while (module->functions != NULL) {
    CUfunction next = module->functions->next;
    free(module->functions->name);
    free(module->functions);
    module->functions = next;
  }
  while (module->globals != NULL) {
    struct global *next = module->globals->next;
    free(module->globals->name);
    free(module->globals);
    module->globals = next;
  }
  pthread_mutex_destroy(&module->lock);
  free(module->text);
  free(module);
}

void module_close(CUmodule module) {
  pthread_mutex_lock(&lock);
  for (CUmodule *at = &modules; *at != NULL; at = &(*at)->next) {
    if (*at != module) continue;
    *at = module->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  if (module->context != NULL && !module->context->destroyed)
    for (struct global *global = module->globals; global != NULL; global = global->next)
      memory_release(memory_find(global->address));
  if (module->context != NULL) sim_ledger_give(driver.machine, driver.process, module->context->gpu, module->charged);
  module->magic = 0;
  free_module(module);
}

static void close_all(CUcontext context) {
  for (;;) {
    pthread_mutex_lock(&lock);
    CUmodule module = modules;
    while (module != NULL && module->context != context)
      module = module->next;
    pthread_mutex_unlock(&lock);
    if (module == NULL) return;
    module_close(module);
  }
}

CONTEXT_PART(CONTEXT_MODULES, .close = close_all)

/* The caller holds the module's lock. */
static CUfunction known(CUmodule module, const char *name, size_t length) {
  for (CUfunction function = module->functions; function != NULL; function = function->next)
    if (strncmp(function->name, name, length) == 0 && function->name[length] == 0) return function;
  CUfunction function = calloc(1, sizeof *function);
  if (function == NULL) return NULL;
  function->magic = KERNEL_MAGIC;
  function->module = module;
  function->name = strndup(name, length);
  function->carveout = -1;
  function->block[0] = function->block[1] = function->block[2] = 1;
  kernel_read_name(function, function->name);
  function->next = module->functions;
  module->functions = function;
  return function;
}

CUresult module_function(CUmodule module, const char *name, CUfunction *result) {
  if (!names(module, name)) return CUDA_ERROR_NOT_FOUND;
  pthread_mutex_lock(&module->lock);
  *result = known(module, name, strlen(name));
  pthread_mutex_unlock(&module->lock);
  return *result == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

unsigned int module_functions(CUmodule module, CUfunction *functions, unsigned int room) {
  unsigned int count = 0;
  size_t length;
  if (module->any_name) return 0;
  pthread_mutex_lock(&module->lock);
  for (const char *at = next_entry(module->text, &length); at != NULL; at = next_entry(at + length, &length)) {
    if (count < room) functions[count] = known(module, at, length);
    count++;
  }
  pthread_mutex_unlock(&module->lock);
  return count;
}

CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *size) {
  struct allocation *allocation;
  struct global *global;
  CUresult result = CUDA_SUCCESS;
  if (module->context == NULL) return CUDA_ERROR_NOT_FOUND;
  if (module->text != NULL && strstr(module->text, name) == NULL) return CUDA_ERROR_NOT_FOUND;
  pthread_mutex_lock(&module->lock);
  for (global = module->globals; global != NULL && strcmp(global->name, name) != 0; global = global->next) {
  }
  if (global == NULL) {
    result = memory_allocate(module->context, GLOBAL_BYTES, MEMORY_LINEAR, &allocation);
    if (result == CUDA_SUCCESS && (global = calloc(1, sizeof *global)) != NULL) {
      global->name = strdup(name);
      global->address = allocation->base;
      global->next = module->globals;
      module->globals = global;
    }
  }
  pthread_mutex_unlock(&module->lock);
  TRY(result);
  if (global == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  if (address != NULL) *address = global->address;
  if (size != NULL) *size = GLOBAL_BYTES;
  return CUDA_SUCCESS;
}

CUresult module_read_file(const char *path, void **image) {
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult result = CUDA_ERROR_INVALID_IMAGE;
  char *text = NULL;
  if (fstat(file, &status) == 0 && status.st_size > 3 && (text = calloc(1, (size_t)status.st_size + 1)) != NULL &&
      read(file, text, (size_t)status.st_size) == status.st_size)
    result = CUDA_SUCCESS;
  close(file);
  if (result != CUDA_SUCCESS)
    free(text);
  else
    *image = text;
  return result;
}
