#!/bin/sh
# check.sh COMPILER SOURCE_DIR WORK_DIR: compiles every ```cpp block of the documents (README.md, docs/*.md) that has a
# main, as the README says to, without a build system, and runs it beside a folder photos/ of pictures.
set -eu
compiler=$1 root=$2 work=$3
rm -rf "$work"
mkdir -p "$work/photos/red" "$work/photos/blue"
# A PNG of one red pixel.
png='\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\000\001\000\000\000\001\010\002\000\000\000\220wS\336'
png=$png'\000\000\000\014IDATx\234c\370\317\300\000\000\003\001\001\000\311\376\222\357\000\000\000\000IEND\256B`\202'
printf "$png" >"$work/photos/red/1.png"
printf "$png" >"$work/photos/blue/2.png"

for document in "$root"/README.md "$root"/docs/*.md; do
    [ -e "$document" ] || continue
    # Each block becomes one file, with #line, so that a compiler's message names the document's line.
    awk -v out="$work/$(basename "$document" .md)" -v name="$document" '
        /^```cpp$/ {n++; inside = 1; printf "#line %d \"%s\"\n", NR + 1, name > (out "-" n ".cpp"); next}
        /^```$/ {inside = 0}
        inside {print > (out "-" n ".cpp")}' "$document"
done
count=0
for block in "$work"/*.cpp; do
    grep -q 'int main(' "$block" || continue
    count=$((count + 1))
    "$compiler" -std=c++20 -O1 -I"$root/include" "$block" -o "$work/program" -pthread
    echo "== $(sed -n '1s/#line //p' "$block")"
    (cd "$work" && ./program) || { echo "the program failed: $block"; exit 1; }
done
echo "$count programs of the documents compiled and ran"
[ "$count" -gt 0 ]
