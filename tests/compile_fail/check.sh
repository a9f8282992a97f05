#!/bin/sh
# check.sh COMPILER INCLUDE_DIR SOURCE: the source must not compile, with the words of its first line ("// expect: WORDS") in
# what the compiler says; with -DTWIN it must compile.
set -u
compiler=$1 include=$2 source=$3
words=$(sed -n '1s|^// expect: ||p' "$source")
if [ -z "$words" ]; then
    echo "$source: the first line has to be '// expect: WORDS'"
    exit 1
fi
if ! "$compiler" -std=c++20 -fsyntax-only -DTWIN -I"$include" "$source"; then
    echo "$source: the twin does not compile"
    exit 1
fi
if output=$("$compiler" -std=c++20 -fsyntax-only -I"$include" "$source" 2>&1); then
    echo "$source compiles, but must not"
    exit 1
fi
if ! printf '%s\n' "$output" | grep -qF -- "$words"; then
    printf '%s\n' "$output" "$source: the compiler does not say: $words"
    exit 1
fi
