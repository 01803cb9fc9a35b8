# Sourced by scripts that start ranks many times. Most of a start is the loading of LibTorch. load_program loads the
# program once, as a server that forks itself for every start (fork_server.cpp), and sets `loaded`: the command to use in
# place of the program, also after mpirun. Its processes look like the program's own.
# shellcheck disable=SC2034  # for the sourcing script
loaded=()

# load_program PROGRAM FOLDER [LIBRARY...]: the server's files are in the folder, where the caller lists nothing; the
# libraries are preloaded, too. Where no server can be made, `loaded` is the program itself, and it takes longer.
load_program() {
  local program=$1 folder=$2 sources server own=$BASHPID
  local libraries=("$folder/fork_server.so" "${@:3}")
  sources=$(dirname "${BASH_SOURCE[0]}")
  loaded=("$program")
  [[ -x $program-torch && ${#folder} -lt 80 ]] || return 0    # the path of a socket has at most 107 characters
  c++ -shared -fPIC -O1 -std=c++20 "$sources/fork_server.cpp" -o "$folder/fork_server.so" -ldl 2>/dev/null &&
    c++ -O1 -std=c++20 "$sources/fork_client.cpp" -o "$folder/fork_client" 2>/dev/null || return 0
  LD_PRELOAD=$(IFS=:; echo "${libraries[*]}") "$program-torch" "$folder/socket" "$own" </dev/null >"$folder/server.log" 2>&1 &
  server=$!
  disown "$server"    # it is none of the script's jobs, and ends by itself when the script does
  local limit=$((SECONDS + 300))
  until [[ -S $folder/socket ]]; do
    if ! kill -0 "$server" 2>/dev/null; then return 0; fi
    if [[ $SECONDS -ge $limit ]]; then kill -KILL "$server"; return 0; fi
    sleep 0.05
  done
  if "$folder/fork_client" "$folder/socket" "$program" --version >/dev/null 2>&1; then
    loaded=("$folder/fork_client" "$folder/socket" "$program")
  fi
}
