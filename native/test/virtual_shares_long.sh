#!/bin/sh
TITLE="containers get their shares with every time slice, switches of 400 us, kernels of 20 us to 20 ms and eight of them" \
  exec "$(dirname "$0")/virtual_shares.sh"
