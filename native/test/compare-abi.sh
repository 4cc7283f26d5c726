# Folders with the vendor's headers: CUDA_HEADERS, separated by colons.
header_folders() {
  echo "${CUDA_HEADERS:-$(printf '%s:' "${CUDA_HOME:-/usr/local/cuda}/include" /usr/local/cuda-*/include)/usr/include}"
}

# find_header NAME PATTERN: the first header of that name with a matching line.
find_header() {
  header_folders | tr ':' '\n' | while read -r folder; do
    grep -qs "$2" "$folder/$1" && echo "$folder/$1" && break
  done
}

# Compares headers of our own with the vendor's: compare_abi VENDOR_FLAGS FUNCTIONS_HEADER CALLS HEADER...
# The numbers, types and fields that our headers name are printed by one program compiled against either side, and the two
# outputs must be the same; the header with the functions is compiled after the vendor's, which makes the compiler compare
# every prototype. SKIP_TYPES names types that the vendor no longer declares.
compare_abi() {
  vendor=$1
  functions=$2
  calls=$3
  shift 3
  compiler="${CC:-cc} -std=gnu11 -w -Iinclude"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  {
    printf '#include <stddef.h>\n#include <stdio.h>\n#define NUMBER(n) printf("%%s %%lld\\n", #n, (long long)(n));\n'
    printf '#define TYPE(t) printf("sizeof %%s %%zu\\n", #t, sizeof(t));\n'
    printf '#define FIELD(t, f) printf("%%s.%%s at %%zu, %%zu bytes\\n", #t, #f, offsetof(t, f), sizeof(((t *)0)->f));\n'
    printf 'int main(void) {\n'
    sed -n 's/^  \([A-Za-z0-9_]*\) = -\{0,1\}[0-9a-fA-Fx]*,$/NUMBER(\1)/p; s/^#define \([A-Za-z0-9_]*\) -\{0,1\}[0-9][0-9a-fA-FxUL]*$/NUMBER(\1)/p' "$@" |
      grep -v '(CUDA_ABI_VERSION)'
    awk -v skip=" ${SKIP_TYPES:-} " '
      /^typedef (struct|union)[ A-Za-z0-9_]*\{/ { depth = 1; fields = 0; next }
      depth && /\{$/ { depth++; next }
      depth == 1 && /^\} [A-Za-z0-9_]*;/ {
        sub(/^\} /, ""); sub(/;.*/, "")
        if (index(skip, " " $0 " ") == 0) { print "TYPE(" $0 ")"; for (i = 0; i < fields; i++) print "FIELD(" $0 ", " field[i] ")" }
        depth = 0; next
      }
      depth && /^ *\}/ { depth-- }
      depth == 1 && /;/ {
        line = $0; sub(/;.*/, "", line); sub(/\[.*/, "", line); sub(/.*[ *}]/, "", line)
        if (line != "") field[fields++] = line
      }' "$@"
    printf 'return 0; }\n'
  } >"$work/facts.c"
  last=$(for header in "$@"; do echo "$header"; done | head -n 1)
  $compiler -include "$last" "$work/facts.c" -o "$work/ours" || exit 1
  $compiler $vendor "$work/facts.c" -o "$work/theirs" || exit 1
  "$work/ours" >"$work/ours.txt"
  "$work/theirs" >"$work/theirs.txt"
  echo "$(wc -l <"$work/ours.txt") facts, $(grep -cE '^[A-Z]+_(HOOK|CALL|FORWARD)\(' "$calls") prototypes"
  diff "$work/ours.txt" "$work/theirs.txt" || exit 1
  printf '#include "%s"\n' "$(basename "$functions")" >"$work/prototypes.c"
  ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Iinclude $vendor -fsyntax-only "$work/prototypes.c" || exit 1
}
