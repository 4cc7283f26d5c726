/* Log lines on stderr: at most sixteen per process, filtered by the log level in the limits file. */
#ifndef VGPU_LOG_H
#define VGPU_LOG_H

#include "vgpu_abi.h"

void log_set_level(uint32_t level);

/* Writes "gpu-manager: <what><detail>\n" with one system call; either may be NULL. */
void log_line(enum vgpu_log_level level, const char *what, const char *detail);

#endif
