// The fixed parts of the completion scripts: functions for both shells, and the registration in each.
#pragma once

namespace shardmark {

inline constexpr const char* kCandidatesScript = R"sh(
# _shardmark_find COMMAND NAME: names, count, values and about of that flag; returns 1 where there is none.
_shardmark_find() {
  while IFS='	' read -r names count values about; do
    case ",$names," in *",$2,"*) return 0 ;; esac
  done <<END
$(_shardmark_flags "$1")
END
  return 1
}

# _shardmark_place COMMAND N: the same of its positional argument N, or of the last, where that is a list.
_shardmark_place() {
  local place=0
  while IFS='	' read -r names count values about; do
    case $names in '<'*) place=$((place + 1)) ;; *) continue ;; esac
    if [ "$place" = "$2" ] || [ "$count" = + ]; then return 0; fi
  done <<END
$(_shardmark_flags "$1")
END
  return 1
}

# Of $values: a word a line; `<files>` stands for names of files.
_shardmark_values() {
  local word
  case $values in
    files) echo '<files>' ;;
    suites)
      for word in suites/*.yaml; do
        word=${word##*/} word=${word%.yaml}
        case " $_shardmark_suites * " in *" $word "*) ;; *) echo "$word" ;; esac
      done
      printf '%s\n' $_shardmark_suites '<files>' ;;
    '= '*) printf '%s\n' ${values#= } ;;
  esac
}

# _shardmark_candidates WORD... CURRENT: what may stand for the current word, a line each, with a tab and what it is.
_shardmark_candidates() {
  [ -z "${ZSH_VERSION:-}" ] || emulate -L sh
  local command= flag= taken=0 place=1 names= count= values= about= word=
  shift
  while [ $# -gt 1 ]; do
    word=$1
    shift
    if [ -z "$command" ] && case $word in -*) false ;; *) [ -z "$flag" ] || [ "$count" -le "$taken" ] ;; esac; then
      command=$word flag=
    elif [ "$word" = -- ] && [ "$command" != run ] && [ -n "$command" ] && _shardmark_find "$command" '<flags>'; then
      command=$values flag= place=1000
    elif case $word in -*) true ;; *) false ;; esac; then
      flag=$word taken=0
      _shardmark_find "$command" "$word" || count=0
    elif [ -n "$flag" ] && { [ "$count" = + ] || [ "$count" -gt "$taken" ]; }; then
      taken=$((taken + 1))
    else
      flag= place=$((place + 1))
    fi
  done
  if [ -n "$flag" ] && { [ "$count" = + ] || [ "$count" -gt "$taken" ]; }; then
    case $count$1 in +-*) ;; *) _shardmark_values; return ;; esac
  elif [ -z "$command" ]; then
    _shardmark_commands
  elif _shardmark_place "$command" "$place"; then
    _shardmark_values
  fi
  case $1 in -*) ;; *) return ;; esac
  while IFS='	' read -r names count values about; do
    for word in ${names//,/ }; do
      case $word in -*) printf '%s\t%s\n' "$word" "$about" ;; esac
    done
  done <<END
$(_shardmark_flags "$command")
END
}
)sh";

inline constexpr const char* kBashScript = R"sh(
_shardmark() {
  local word words=() IFS=$'\n'
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do [[ $word == = ]] || words+=("$word"); done    # --flag=value is three
  [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=('')
  local current=${words[${#words[@]}-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [[ $word == '<files>' ]]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "$current"))
    elif [[ $word == "$current"* ]]; then
      COMPREPLY+=("$word")
    fi
  done < <(IFS=$' \t\n'; _shardmark_candidates "${words[@]}")
}
complete -F _shardmark shardmark
)sh";

inline constexpr const char* kZshScript = R"sh(
_shardmark() {
  local line before
  local -a found given
  given=("${(@)words[1,CURRENT]}")
  if [[ $given[-1] == --*=* ]]; then
    before=$given[-1]
    given[-1]=(${before%%=*} "${before#*=}")
    compset -P '*='
  fi
  for line in "${(@f)$(_shardmark_candidates "$given[@]")}"; do
    case $line in
      '<files>') _files ;;
      ?*) found+=("${${line%%$'\t'*}//:/\\:}:${${line#*$'\t'}:#$line}") ;;
    esac
  done
  _describe -t values shardmark found
}
if [[ ${funcstack[1]} == _shardmark ]]; then _shardmark "$@"; else compdef _shardmark shardmark; fi
)sh";

}  // namespace shardmark
