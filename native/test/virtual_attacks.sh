#!/bin/sh
# Containers that lie about their turns, or stop in them, beside two that do not, in virtual time.
echo "${TITLE:-containers that lie about turns or end in theirs take from others at most what docs/reference/security.md says}"
build="${NATIVE_BUILD:-build}"
nm -D "$build/virtual/rows" 2>/dev/null | grep -q __asan && { echo "skip: preloading does not work with sanitizers"; exit 77; }
result=0
# row PERCENT PATTERN+ATTACK@SHARE...: containers that do not attack get this part of their share over the first three
# seconds, and half of it in each. The attacker gets no more than its share.
row() {
  part=$1
  shift
  "$build/virtual/rows" 3 1000 '{}' "$@" async:2000@50 async:2000@30 >"$GPU_SIM_STATE/rows" || result=1
  echo "$*"
  cat "$GPU_SIM_STATE/rows"
  awk -v part="$part" -v attackers=$# '
    /^sum/ { next }
    ++n <= attackers { if ($3 > $2 + 1) { print "# the attacker gets more"; failed = 1 }; next }
    { if ($3 < $2 * part / 100) { print "# got less"; failed = 1 }
      for (i = 7; i <= NF; i++) if ($i < $2 / 2) { print "# little in a second"; failed = 1 } }
    END { exit failed || n != attackers + 2 }' "$GPU_SIM_STATE/rows" || result=1
}
if [ -z "${TITLE:-}" ]; then
  row 79 "none+hold@20"
  row 97 "async:2000+kill@20"
  exit $result
fi
for lie in wait wake cut; do
  row 79 "none+$lie@20"
done
row 82 none+hold@5 none+hold@5 none+wait@5 none+wait@5
for attack in first last apart stop; do
  row 97 "async:2000+$attack@20"
done
exit $result
