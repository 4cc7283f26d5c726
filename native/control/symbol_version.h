/* glibc 2.34 moved dlopen and dlsym into libc under new versions. The oldest version of the symbols exists on every
 * glibc since 2.17. */
#ifndef VGPU_SYMBOL_VERSION_H
#define VGPU_SYMBOL_VERSION_H

#if defined(__x86_64__)
#define OLDEST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST_VERSION "GLIBC_2.17"
#else
#error "the control library is built for x86-64 and aarch64"
#endif

__asm__(".symver dlopen,dlopen@" OLDEST_VERSION);
__asm__(".symver dlsym,dlsym@" OLDEST_VERSION);

#endif
