#!/usr/bin/env bash
# QUICK
# NEEDS torch: pages show commands of ranks, too.
# Checks the pages of this repository (*.md): every relative link and anchor has a target, every command is known to the
# program, make or the shell, every block of printed output equals what the program prints now, and pages do not exceed
# their maximum length.
#   tests/cli/readmes.sh build/shardmark --write     writes the printed blocks anew (make readmes)
#   tests/cli/readmes.sh build/shardmark --why       also lists the commands that are not checked, and why
set -euo pipefail

cd "$(dirname "$0")/../.."
python3=.venv/bin/python3
[[ -x $python3 ]] || python3=$(command -v python3) || { echo "no python3 to read the pages with"; exit 77; }
unset COLUMNS
NO_COLOR=1 "$python3" tests/cli/readmes.py "$@"
