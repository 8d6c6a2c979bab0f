#!/usr/bin/env bash
# Installs what is missing, configures, builds and tests. Works alone on a fresh machine and in any folder.
#   tools/test.sh            release: every test
#   tools/test.sh asan       AddressSanitizer and UBSan: every test
#   tools/test.sh tsan       ThreadSanitizer: the tests labelled `threads`
# What follows the preset is given to ctest (tools/test.sh release -R ops).
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
[ $# -eq 0 ] || shift
case $preset in
  release | asan | tsan) ;;
  *) echo "test.sh: expected release, asan or tsan, found '$preset'" >&2; exit 2 ;;
esac

tools/setup.sh
# A build folder that came from elsewhere (a copied checkout) cannot be configured again: start it anew then.
cmake --preset "$preset" >/dev/null || cmake --fresh --preset "$preset"

targets=()
select=()
jobs=1  # some release tests measure time
[ "$preset" = release ] || jobs=$(nproc)
if [ "$preset" = tsan ]; then
  targets=(--target threads_tests)
  select=(-L threads)
fi
cmake --build --preset "$preset" "${targets[@]}" -- --quiet

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --timeout 1200 -j "$jobs" "${select[@]}" "$@"
