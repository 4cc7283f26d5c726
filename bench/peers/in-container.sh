#!/bin/sh
# Runs a program as in a container: in-container.sh DIRECTORY PROGRAM...
# Called in a mount namespace of its own. DIRECTORY/etc, tmp, local and proc become /etc, /tmp, /usr/local and /proc/driver.
# KEEP names folders, separated by colons, that stay visible although they lie in /tmp. PRELOAD is the library that the
# program loads first.
set -eu
directory=$1
shift
mount --bind "$directory/proc" /proc/driver
IFS=:
for folder in ${KEEP:-}; do
  case $folder in /tmp/*) mkdir -p "$directory/tmp/${folder#/tmp/}" && mount --bind "$folder" "$directory/tmp/${folder#/tmp/}" ;; esac
done
mount --rbind "$directory/tmp" /tmp
mount --bind "$directory/etc" /etc
mount --bind "$directory/local" /usr/local
unset IFS
[ -z "${PRELOAD:-}" ] || export LD_PRELOAD="$PRELOAD"
exec "$@"
