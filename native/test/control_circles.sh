#!/bin/sh
# Checks that the dependencies between files of a library, by calls and includes, have no cycle.
set -u
echo "no files of the control libraries or of the simulated driver depend on each other in a cycle"
command -v nm >/dev/null || { echo "skip: nm is not installed"; exit 77; }
build=${NATIVE_BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Reads edges "A B" (A needs B), removes files without dependencies or dependents, and leaves only cycles.
circles() {
  sort -u | awk -v what="$1" '
    $1 != $2 { from[++count] = $1; to[count] = $2 }
    END {
      do {
        split("", needs); split("", needed)
        for (i = 1; i <= count; i++) if (!gone[i]) { needs[from[i]] = 1; needed[to[i]] = 1 }
        changed = 0
        for (i = 1; i <= count; i++)
          if (!gone[i] && (!(to[i] in needs) || !(from[i] in needed))) { gone[i] = 1; changed = 1 }
      } while (changed)
      for (i = 1; i <= count; i++) if (!gone[i]) { print what ": " from[i] " needs " to[i]; failed = 1 }
      exit failed
    }'
}

# Calls, from the symbols of the objects of one library.
calls() { # name, objects
  name=$1
  shift
  nm -A -P "$@" | awk '
    { file = $1; sub(/:$/, "", file); sub(/.*\//, "", file); sub(/\.o$/, "", file) }
    $3 ~ /^[TDBRVC]$/ { defined[$2] = file }
    $3 == "U" { asks[++count] = file; asked[count] = $2 }
    END { for (i = 1; i <= count; i++) if (asked[i] in defined) print asks[i], defined[asked[i]] }' >"$work/calls"
  [ -s "$work/calls" ] || { echo "$name: no calls were found between its objects"; exit 1; }
  circles "$name" <"$work/calls"
}

objects() { # the files of a part that match
  for file in $(ls "$1"/*.c | grep -E "$2"); do echo "$build/${file%.c}.o"; done
}

failed=0
# shellcheck disable=SC2046 # names without blanks
calls libcuda-control.so $(objects control . | grep -vE '/(nvml_[a-z]*|directory_fixed)\.o$') || failed=1
# shellcheck disable=SC2046
calls libnvml-control.so $(objects control '/(nvml_.*|descriptor|directory|directory_sandbox|fork|ledger|limits|objects|os|process|share_law|usage)\.c$') || failed=1
# shellcheck disable=SC2046
calls "simulated libcuda" $(objects sim . | grep -vE '/(nvml_[a-z]*|gpu_sim)\.o$') || failed=1
# shellcheck disable=SC2046
calls "simulated libnvidia-ml" $(objects sim '/(nvml_.*|clock|descriptor|ledger|liveness|machine.*|model|process|process_state|wait)\.c$') || failed=1
for part in control sim; do
  grep -H '^#include "' $part/*.h | sed -E 's,^[a-z]*/([^:]*):#include "([^"]*)".*,\1 \2,' >"$work/includes"
  circles "headers of $part" <"$work/includes" || failed=1
done

# Self-test: a cycle of two files is detected.
printf 'a b\nb a\nb c\n' | circles check >/dev/null && { echo "a cycle is not detected"; failed=1; }
exit $failed
