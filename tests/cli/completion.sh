#!/usr/bin/env bash
# QUICK
# shardmark --completion: every flag of every command that --help-all lists is offered, and every word that a flag takes; in bash,
# with the variables that readline sets, and in zsh, where it is installed, by keys typed into it.
set -euo pipefail
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

"$shardmark" --completion bash >script.bash
"$shardmark" --completion=zsh >_shardmark
command=--completion
refuses 'bash, zsh' fish
refuses 'completion'
[[ $(head -n 1 _shardmark) == '#compdef shardmark' ]] || fail "zsh would not load: $(head -n 1 _shardmark)"
mkdir suites && touch suites/mine.yaml suites/quick.yaml 'a study.h5'
# shellcheck source=/dev/null
source script.bash

# completes LINE: prints what bash offers for the last word, one per line.
completes() {
  read -ra COMP_WORDS <<<"${1//=/ = }"
  [[ $1 != *' ' && $1 != *= ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _shardmark 2>err
  [[ ! -s err ]] || fail "'$1': $(cat err)"
  printf '%s\n' "${COMPREPLY[@]}"
}
# offers LINE WORD...: exactly these words are offered. If one of the words is "...", there may be others.
offers() {
  local line=$1 said word
  shift
  said=$(completes "$line" | sort -u)
  if [[ ${!#} == ... ]]; then
    for word in "${@:1:$#-1}"; do grep -qxF -- "$word" <<<"$said" || fail "'$line' does not offer $word, but $said"; done
  else
    [[ $said == "$(printf '%s\n' "$@" | sort -u)" ]] || fail "'$line' offers $said, not $*"
  fi
}
offers 'shardmark rep' report
offers 'build/shardmark plan qui' quick
offers 'shardmark plan ' mine quick scaling ...
offers 'shardmark plan --model gpt' gpt2 gpt2_medium ...
offers 'shardmark plan quick --strategy ddp fs' fsdp
offers 'shardmark plan quick --strategy=fs' fsdp
offers 'shardmark plan quick --precision bf16 --memory 8' ''
offers 'shardmark report a' 'a study.h5'
offers 'shardmark report small.h5 --table scaling_l' scaling_laws
offers 'shardmark predict small.h5 --network nd' ndr400 ...
offers 'shardmark list zer' zero3 ...
offers 'shardmark launch quick -- --steps 2 --strategy zer' zero3 ...
offers 'shardmark launch quick -- --launcher' ''
offers 'shardmark --vers' --version
offers 'shardmark --completion ' bash zsh
offers 'shardmark --completion b' bash
offers 'shardmark list ref' reference
offers 'shardmark plan quick --set ' ''
if [[ -x $shardmark-torch ]]; then
  offers 'shardmark run quick --device c' cpu cuda
  offers 'shardmark collective all_re' all_reduce
fi

# Every flag and every word of a flag, as --help-all has them.
count=0
while read -r name; do
  "$shardmark" "$name" --help-all >help
  mapfile -t flags < <(awk '/^  -/ {print $1}' help | tr ',' '\n')
  offers "shardmark $name -" "${flags[@]}"
  while read -r flags words; do
    mapfile -t words < <(tr ',' '\n' <<<"$words" | tr -d ' ')
    offers "shardmark $name ${flags##*,} " "${words[@]}"
  done < <(sed -nE 's/^  (-[^ ]+) WORD:(([a-z0-9_]+, )*[a-z0-9_]+)( .*)?$/\1 \2/p' help)
  count=$((count + ${#flags[@]}))
done < <("$shardmark" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
[[ $count -gt 100 ]] || fail "--help-all lists $count flags: this test no longer reads it"

can_use zsh || exit 0
# Prints what zsh shows in a pseudo-terminal after some keys and two tabs. It waits as long as zsh needs.
cat >keys.zsh <<'Z'
zmodload zsh/zpty
setopt extendedglob
zpty shell zsh -f -i
zpty -w shell "PROMPT='%% ' fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000; stty columns 200; print rea''dy"
until [[ $line == *ready* ]]; do zpty -r shell line; done
zpty -n -w shell "$1"$'\t\t'
shift
for ((try = 0; try < 6000 && $#; ++try)); do
  if zpty -r -t shell line; then said+=${line//$'\e'\[[0-9;?]#[a-zA-Z]/}; else sleep 0.1; fi
  while [[ $# -gt 0 && $said == *$1* ]]; do shift; done
done
zpty -d shell
[[ $# == 0 ]] || { print -r -- "'$1' is not in: $said"; exit 1; }
Z
typed() { zsh -f keys.zsh "$@" >shown || fail "zsh, '$1': $(cat -v shown)"; }
typed 'shardmark pl' 'shardmark plan'
typed 'shardmark plan quick --strategy ddp zer' 'ddp zero3'
typed 'shardmark plan --precision=b' '--precision=bf16'
typed 'shardmark report --table scaling_l' '--table scaling_laws'
typed 'shardmark plan --mem' '--memory'
typed 'shardmark launch quick -- --st' '--steps' 'timed steps of each point'
