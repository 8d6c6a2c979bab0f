#!/usr/bin/env bash
# report.html of a small run in headless Chromium: curves, confusion matrix and thumbnails are on the page, nothing is wider than the window, the
# console is silent; and pictures of it to look at. Needs Debian's package chromium (300 MB, which is why tools/setup.sh leaves it out; a machine
# that has it runs tests/tools/report_page_test.cc too) and the programs tandem and demo_images of build/release. Not part of CI.
#   tests/peers/chromium.sh [OUT]      default: build/peers/chromium
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/peers/chromium}")
bin=build/release/bin

command -v chromium >/dev/null || { echo "chromium.sh: needs the package chromium (apt-get install chromium)" >&2; exit 1; }
rm -rf "$out"
mkdir -p "$out"

# 60 images of each class to learn from, 40 to measure; one class with a name that hurts.
"$bin/demo_images" /usr/share/datasets/fashion-mnist "$out/all" >/dev/null
for part in train val; do
  count=60
  [ "$part" = train ] || count=40
  for class in "$out/all/new/$part"/*; do
    name=$(basename "$class")
    [ "$name" != Bag ] || name='<b>Bag & "co"'
    mkdir -p "$out/data/$part/$name"
    find "$class" -name '*.png' | sort | sed -n "1,${count}p" | xargs -d '\n' cp -t "$out/data/$part/$name"
  done
done
rm -rf "$out/all"
"$bin/tandem" train models/xception_mini/trainable.onnx "$out/data" --preprocess tf --image-size 64 --resize nearest --fit squash --epochs 3 \
  --optimizer momentum --lr 0.01 --devices cpu:2 --output "$out/run"

browse() {  # browse ARGUMENTS...: what the page and the console say
  timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$out/profile" --allow-file-access-from-files \
    --enable-logging=stderr --virtual-time-budget=10000 "$@" 2>"$out/console.txt"
}
facts() { browse --dump-dom "file://$PWD/tests/peers/report_page.html#$1|file://$2" | sed -n 's/.*facts: \(.*\) end.*/\1/p'; }
fail() { echo "chromium.sh: $*" >&2; exit 1; }

for width in 400 1280; do
  found=$(facts "$width" "$out/run/report.html")
  echo "$width pixels: $found"
  # Loss and accuracy of training and validation, learning rate, images a second; 5 x 5 cells.
  [[ "$found" == "curves=6 cells=25 figures=24 pictures=24 devices=2 scripts=0 too_wide=0 texts_outside=0 least_text="* ]] || fail "not as it should be"
  ! grep CONSOLE "$out/console.txt" || fail "the console is not silent"
  awk -v least="${found##*=}" 'BEGIN { exit !(least >= 10) }' || fail "letters of ${found##*=} pixels cannot be read"
  browse --window-size="$width,2600" --screenshot="$out/report-$width.png" "file://$out/run/report.html"
  [ -s "$out/report-$width.png" ] || fail "no picture"
done

# What would be wrong is noticed: a script, and a picture that is damaged.
sed 's|</body>|<script>alert(1)</script></body>|; 0,/base64,iVBO/s//base64,AAAA/' "$out/run/report.html" >"$out/broken.html"
found=$(facts 1280 "$out/broken.html")
[[ "$found" == *"pictures=23 "*"scripts=1 "* ]] || fail "damage is not noticed: $found"
grep -q CONSOLE "$out/console.txt" || fail "a refused script is not noticed"
rm -rf "$out/profile" "$out/broken.html" "$out/console.txt"
echo "chromium.sh: all is well; $out/report-400.png and report-1280.png are to be looked at"
