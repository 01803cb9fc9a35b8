#!/usr/bin/env bash
# Runs the tests of this folder ($1: the program). The first finding of ThreadSanitizer ends it, with a report.
set -euo pipefail
program=$1
export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"

# The ThreadSanitizer of g++ 12 cannot start if the kernel randomizes too many address bits.
fixed=()
! setarch --addr-no-randomize true 2>/dev/null || fixed=(setarch --addr-no-randomize)

if ! said=$("${fixed[@]}" "$program" --gtest_list_tests 2>&1) && [[ $said == *"unexpected memory mapping"* ]]; then
  echo "skipped: ThreadSanitizer does not start on this kernel; sysctl vm.mmap_rnd_bits=28 lets it"
  exit 77
fi
exec "${fixed[@]}" "$program"
