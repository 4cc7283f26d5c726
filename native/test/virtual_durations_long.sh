#!/bin/sh
TITLE="launches of which 1 of 20 takes 10 ms or 1 of 200 80 ms, get their share over 10 s beside others too, and graphs whose nodes change alone" \
  exec "$(dirname "$0")/virtual_durations.sh"
