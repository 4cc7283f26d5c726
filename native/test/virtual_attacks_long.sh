#!/bin/sh
TITLE="containers that lie about turns in every way, or stop in theirs, take from others at most what docs/reference/security.md says" \
  exec "$(dirname "$0")/virtual_attacks.sh"
