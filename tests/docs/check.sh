#!/bin/sh
# check.sh COMPILER SOURCE_DIR WORK_DIR: compiles every ```cpp block of the documents that has a main, as the README says
# to, without a build system, and runs it.
set -eu
compiler=$1 root=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
count=0
for document in "$root"/README.md; do
    awk -v out="$work/block" '/^```cpp$/ {n++; inside=1; next} /^```$/ {inside=0} inside {print > (out n ".cpp")}' "$document"
done
mkdir -p "$work/photos/red" "$work/photos/blue"
# Two small pictures in PPM would not do: a PNG of 2 x 2 pixels each, written byte by byte.
png='\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\000\001\000\000\000\001\010\002\000\000\000\220wS\336\000\000\000\014IDATx\234c\370\317\300\000\000\003\001\001\000\311\376\222\357\000\000\000\000IEND\256B`\202'
printf "$png" > "$work/photos/red/1.png"
printf "$png" > "$work/photos/blue/2.png"
for block in "$work"/block*.cpp; do
    grep -q 'int main(' "$block" || continue
    count=$((count + 1))
    "$compiler" -std=c++20 -O1 -I"$root/include" "$block" -o "$work/program" -pthread
    (cd "$work" && ./program > output.txt) || { cat "$work/output.txt"; echo "$block failed"; exit 1; }
done
echo "$count programs of the documents compiled and ran"
[ "$count" -ge 2 ]
