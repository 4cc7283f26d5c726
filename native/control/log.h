/* One line on stderr, at most sixteen of them, and only what the limits file's log level lets through. */
#ifndef VGPU_LOG_H
#define VGPU_LOG_H

#include "vgpu_abi.h"

void log_set_level(uint32_t level);

/* Writes "gpu-manager: <what><detail>\n" with one system call; either may be NULL. */
void log_line(enum vgpu_log_level level, const char *what, const char *detail);

#endif
