#!/usr/bin/env bash
# QUICK
# Checks the house rules that a machine can check: a folder includes only folders before it in the list, the analysis
# side needs no LibTorch, MPI or CUDA, only base/log writes to the standard streams, and each file begins with a comment
# that says what it is, unless it implements a header that says so. No namespace may have two types with the same name,
# because a linked program would use either of them (the one-definition rule). No script pipes into a command that may end
# before it has read everything: what writes into that pipe can be stopped by SIGPIPE, and then the pipe fails by chance.
set -euo pipefail

readonly LAYERS=(base schema specs strategies plan import data/order data/files launch comm/watch comm/pt2pt/engine doctor device comm doctor/machine kernels models data executor checkpoint sweep train cli)
# The folders of analysis, in the same order. "analysis" itself has the report, which combines the tables.
readonly ROOMS=(analysis/{table,frame,stats,reference,findings,predict,render,tables,overview} analysis analysis/{compare,plots,page})
readonly PLAIN=(base schema specs strategies plan import data/order data/files launch)
readonly LIGHT=("${PLAIN[@]}" comm/watch comm/pt2pt/engine doctor)
# Only base/log writes to the standard streams. It escapes control characters from files and flags.
readonly PRINTS='fmt::print|std::(fputs|fprintf|printf|puts|fwrite)|std::(cout|cerr)'
readonly HEAVY='#include [<"](ATen|c10|torch|mpi\.h|cuda|nccl|nvml)'

# Prints the lines of files that include a folder of this repository which theirs may not. The folders of src/ may include
# those before them, and commands (cli) all of analysis, too. A folder of analysis may include those of analysis before it,
# and a few of src/. A path in quotes names a folder; if folders are nested (comm, comm/watch), the inner one counts. Files
# in the same folder are included with their folder, too.
readonly BAD_INCLUDES='
function folder_of(path, i, found) {
  found = ""
  for (i = 1; i <= count; ++i)
    if (index(path, folders[i] "/") == 1 && length(folders[i]) > length(found)) found = folders[i]
  return found
}
function allow(names, i, parts) { for (i = split(names, parts, " "); i > 0; --i) is_allowed[parts[i]] = 1 }
function allow_up_to(own, first, last, i) { for (i = first; i <= last; ++i) { is_allowed[folders[i]] = 1; if (folders[i] == own) return } }
BEGIN { num_layers = split(layers, folders, " "); count = split(layers " " rooms, folders, " ") }
FNR == 1 {
  path = substr(FILENAME, length(root) + 2)
  split("", is_allowed)
  is_inside = sub(/^src\//, "", path)
  own = folder_of(path)
  if (own == "") nextfile
  if (is_inside) allow_up_to(own, 1, num_layers)
  else { allow("base schema specs strategies"); allow_up_to(own, num_layers + 1, count) }
  if (own == "cli") allow(rooms)
  if (path ~ /^cli\/[^\/]*$/) { split("", is_allowed); allow(plain " " rooms " cli") }    # in every build, unlike those of cli/run/
}
/^#include "(src\/)?[a-z_]+\// {
  included = $2
  gsub(/"/, "", included)
  if (!(folder_of(included) in is_allowed)) print FILENAME ":" FNR ":" $0
}'

# Finds types that two of the given files define in the same namespace. Types in unnamed namespaces are local to their
# file.
readonly SAME_TYPES='
FNR == 1 { space = ""; unnamed = 0 }
/^namespace [a-z_:0-9]+ \{/ { space = $2 }
/^namespace \{/ { unnamed = 1 }
/^}  \/\/ namespace$/ { unnamed = 0 }
/^(class|struct|enum class|enum|union) [A-Za-z0-9_]+( |$)/ && /[{:]/ && !/;$/ && !unnamed {
  name = space "::" ($1 == "enum" && $2 == "class" ? $3 : $2)
  if (name in file && file[name] != FILENAME) print FILENAME ": " name " is a type of " file[name] ", too"
  else file[name] = FILENAME
}'

# Prints all violations of the rules below a root that has src/ and analysis/.
broken_rules() {
  local root=$1 layer inner nested file files all light=()
  mapfile -t files < <(sources "$root/src" "$root/analysis")
  awk -v root="$root" -v layers="${LAYERS[*]}" -v rooms="${ROOMS[*]}" -v plain="${PLAIN[*]}" "$BAD_INCLUDES" "${files[@]}"
  awk "$SAME_TYPES" "${files[@]}"
  for layer in "${LIGHT[@]}"; do
    nested='^$'
    for inner in "${LAYERS[@]}"; do [[ $inner != "$layer"/* ]] || nested+="|^$root/src/$inner/"; done
    for file in "${files[@]}"; do [[ $file != "$root/src/$layer/"* || $file =~ $nested ]] || light+=("$file"); done
  done
  for file in "${files[@]}"; do [[ $file != "$root/analysis/"* ]] || light+=("$file"); done
  grep -nE "$HEAVY" "${light[@]}" /dev/null || true
  mapfile -t all < <(printf '%s\n' "${files[@]}" | grep -vE '/base/log\.cpp$|/cli/raw_output\.cpp$|/cli/submit\.cpp$')  # JSON of a study, and the file of a job
  grep -nE "$PRINTS" "${all[@]}" /dev/null || true
  mapfile -t all < <(sources "$root/src" "$root/analysis" "$root/suites" "$root/tests")
  while read -r file; do
    [[ $file == *.cpp && -e ${file%.cpp}.h ]] || echo "$file: must open with a comment that says what it is"
  done < <(awk 'FNR == 1 && /^\/\// { is_told[FILENAME] = 1 } END { for (i = 1; i < ARGC; ++i) if (!(ARGV[i] in is_told)) print ARGV[i] }' "${all[@]}")
}

# Prints the lines of scripts that end a pipe early. Under "pipefail" they fail when the writer writes again afterwards,
# which depends on how busy the machine is.
readonly ENDS_A_PIPE='\| *(head|grep (-[a-zA-Z]+ )*-[a-zA-Z]*q)'
ended_pipes() { grep -nE "[^|]$ENDS_A_PIPE" "$@" /dev/null || true; }

sources() {
  local dirs=() dir
  for dir in "$@"; do [[ ! -d $dir ]] || dirs+=("$dir"); done
  ((${#dirs[@]} == 0)) || find "${dirs[@]}" -name '*.cpp' -o -name '*.h' | sort
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# First checks the check itself: each of these files violates one rule, and the good file violates none.
house=$scratch/house
mkdir -p "$house"/src/{base,schema,comm/pt2pt/engine,executor,strategies,cli/run} "$house"/analysis/{frame,tables}
expect() {  # path, content, text of the violation (empty: none)
  printf '%b\n' "$2" >"$house/$1"
  local said
  said=$(broken_rules "$house")
  if [[ -z $3 && -n $said || -n $3 && $said != *"$1"*"$3"* ]]; then
    printf 'the check is broken: %s with "%s" gives "%s"\n' "$1" "$2" "$said"
    exit 1
  fi
  rm "$house/$1"
}
expect src/comm/good.cpp '// Good.\n#include <mpi.h>\n#include "base/error.h"\n#include "comm/good.h"' ''
expect src/base/a.cpp '// Up.\n#include "schema/point.h"' 'schema/point.h'
expect src/comm/a.cpp '// Up.\n#include "executor/executor.h"' 'executor/executor.h'
expect src/strategies/b.h '// Heavy.\n#include <ATen/ATen.h>' 'ATen'
expect src/strategies/a.h '// Aside.\n#include "analysis/table/table.h"' 'analysis/table/table.h'
expect analysis/a.cpp '// Plan is not analysis.\n#include "plan/plan.h"' 'plan/plan.h'
expect src/schema/a.cpp '// Heavy.\n#include <mpi.h>' 'mpi.h'
expect src/comm/pt2pt/engine/a.cpp '// Heavy.\n#include <mpi.h>' 'mpi.h'
expect src/comm/pt2pt/engine/b.cpp '// Up.\n#include "comm/pt2pt/jobs.h"' 'comm/pt2pt/jobs.h'
expect src/comm/pt2pt/b.cpp '// Down.\n#include "comm/pt2pt/engine/engine.h"' ''
expect analysis/a.h '// Heavy.\n#include <ATen/ATen.h>' 'ATen'
expect analysis/frame/a.h '// Up.\n#include "analysis/tables/tables.h"' 'analysis/tables/tables.h'
expect analysis/frame/a.cpp '// Up.\n#include "analysis/report.h"' 'analysis/report.h'
expect analysis/tables/a.cpp '// Down.\n#include "analysis/frame/merged.h"\n#include "schema/point.h"' ''
expect src/cli/a.cpp '// Prints.\nfmt::print("x");' 'fmt::print'
expect src/cli/a.cpp '// In every build.\n#include "comm/communicator.h"' 'comm/communicator.h'
expect src/cli/run/a.cpp '// Good.\n#include "comm/communicator.h"' ''
expect src/base/d.h '// Once.\nnamespace shardmark {\nstruct A {\n};\n}  // namespace shardmark' ''
printf '// Its own.\nnamespace shardmark {\nstruct Twice {\n};\nnamespace {\nstruct Hidden {};\n}  // namespace\n}\n' >"$house"/src/base/e.h
expect src/schema/e.h '// Again.\nnamespace shardmark {\nclass Twice final {\n};\n}' 'shardmark::Twice is a type of'
expect src/schema/e.cpp '// Hidden.\nnamespace shardmark {\nnamespace {\nstruct Twice {\n};\nstruct Hidden {\n};\n}  // namespace\n}' ''
expect src/schema/f.h '// Elsewhere.\nnamespace shardmark::specs {\nstruct Twice {\n};\n}' ''
rm "$house"/src/base/e.h
expect src/base/b.cpp 'int nameless;' 'must open with a comment'

printf '%s\n' 'a | head -n 1' 'b | grep -q x' 'c | grep -i -qx y' 'd || grep -q z e' 'f | sed -n 1p' >"$scratch"/pipes.sh
[[ $(ended_pipes "$scratch"/pipes.sh | wc -l) == 3 ]] || { echo "the check of pipes is broken: $(ended_pipes "$scratch"/pipes.sh)"; exit 1; }

said=$(broken_rules "$(cd "$(dirname "$0")/../.." && pwd)")
cd "$(dirname "$0")/../.."
mapfile -t scripts < <(find .ci/run jobs results tests -name '*.sh' -o -name '*.bash' -o -name run | grep -vF tests/cli/layering.sh | sort)
said+=$(ended_pipes "${scripts[@]}")
[[ -z $said ]] || { printf 'broken house rules:\n%s\n' "$said"; exit 1; }
