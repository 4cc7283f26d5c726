/*
 * WATCHED_CALLS entries for functions of the driver. An entry compares the sequence of the limits with the one that
 * the last call saw, as the hooks of launches do, and jumps to its function. If the agent has published something
 * since, it lets watched_notice look first. All registers that can carry arguments are preserved.
 */
#include "arguments.inc"
#include "watched.h"

#if defined(__x86_64__)

  .hidden gate
  .hidden watched_entries
  .hidden watched_functions
  .globl watched_entries
  .text
  .balign WATCHED_ENTRY_BYTES
  .type watched_entries, @object
watched_entries:
  .set number, 0
  .rept WATCHED_CALLS
  .balign WATCHED_ENTRY_BYTES
  endbr64
  movq gate(%rip), %r11
  movl (%r11), %r11d
  cmpl %r11d, gate + GATE_NOTICED(%rip)
  jne 1f
  jmp *watched_functions + 8 * number(%rip)
1:
  movl $number, %r11d
  jmp notice
  .set number, number + 1
  .endr
  .size watched_entries, . - watched_entries

/* r11: number of the entry. */
  .type notice, @function
notice:
  .cfi_startproc
  KEEP_ARGUMENTS
  movq %r11, 56(%rsp)
  call watched_notice
  movq 56(%rsp), %r11
  RESTORE_ARGUMENTS
  leaq watched_functions(%rip), %r10
  jmp *(%r10, %r11, 8)
  .cfi_endproc
  .size notice, . - notice

#endif

  .section .note.GNU-stack, "", %progbits
