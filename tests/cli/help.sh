#!/usr/bin/env bash
# QUICK
# The help: the first screen and --help of each command fit on a screen, with three examples whose flags exist; --help-all has
# every flag; one letter means one thing in all commands; and there are not more commands and flags than was agreed.
set -euo pipefail
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

readonly WIDTH=80 LINES_OF_SCREEN=50 MOST_COMMANDS=12 MOST_FLAGS=90

# fits FILE: on a screen.
fits() {
  [[ $(wc -l <"$1") -le $LINES_OF_SCREEN ]] || fail "$1: $(wc -l <"$1") lines are more than a screen: $(cat "$1")"
  [[ -z $(awk -v most=$WIDTH 'length > most' "$1") ]] || fail "$1: wider than $WIDTH columns: $(awk -v most=$WIDTH 'length > most' "$1")"
}
flags_in() { { grep -oE '^  (-[a-z]|--[a-z][a-z0-9_-]+)(,(-[a-z]|--[a-z][a-z0-9_-]+))*' "$1" || true; } | tr -d ' '; }

"$shardmark" >first.help
fits first.help
"$shardmark" --help | diff first.help - || fail "--help is not what shardmark alone prints"
mapfile -t commands < <(sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' first.help)
has first.help Measure Before After

for name in "${commands[@]}"; do
  "$shardmark" "$name" --help >"$name.help"
  "$shardmark" "$name" --help-all >"$name.all"
  "$shardmark" help "$name" | diff "$name.help" - || fail "help $name is not $name --help"
  fits "$name.help"
  has "$name.help" "shardmark $name: " "Usage: shardmark $name"
  [[ $(grep -c ' # ' "$name.help") == 3 ]] || fail "$name: not three examples: $(cat "$name.help")"
  flags_in "$name.all" | tr ',' '\n' | sort >known
  while read -r line; do
    flags_in "$name.help" | tr ',' '\n' >short
    sort short | comm -23 - known | grep . && fail "$name: --help has flags that --help-all lacks"
    # Flags of run stand behind --.
    line=${line/launch -n [0-9] $name/$name}    # launch starts ranks for it
    for flag in $(sed 's/ -- .*//; s/  *# .*//; s/.*shardmark //' <<<"$line" | grep -oE -- ' --?[a-z][a-z0-9-]*' || true); do
      [[ $line != *"shardmark $name "* ]] || grep -qxF -- "$flag" known || fail "$name: the example '$line' has $flag, which $name does not know"
    done
  done < <(grep ' # ' "$name.help")
  flags_in "$name.all" | sed "s/^/$name /" >>all_flags
done
"$shardmark" --help-all >everything
for name in "${commands[@]}"; do has everything "Usage: shardmark $name"; done

# A letter has one long name, or none.
while read -r letter; do
  names=$(grep -E "(^| |,)$letter(,|\$)" all_flags | sed -E "s/^[a-z]+ //; s/^$letter,?//" | grep . | sort -u || true)
  [[ $(grep -c . <<<"$names") -le 1 ]] || fail "$letter means several things: $(tr '\n' ' ' <<<"$names")"
done < <(awk '{print $2}' all_flags | tr ',' '\n' | grep -E '^-[a-z]$' | sort -u)

if [[ -x $shardmark-torch ]]; then
  num_flags=$(awk '{print $2}' all_flags | tr ',' '\n' | grep -E '^--' | sort -u | wc -l)
  echo "${#commands[@]} commands, $num_flags flags"
  [[ ${#commands[@]} -le $MOST_COMMANDS ]] || fail "${#commands[@]} commands: at most $MOST_COMMANDS; which of them can go?"
  [[ $num_flags -le $MOST_FLAGS ]] || fail "$num_flags flags: at most $MOST_FLAGS; which of them can go?"
fi
echo 'help: ok'
