# Sourced by tests of `shardmark doctor --pairs --halve` on several nodes. Provides the measurement, and checks of what it
# says.

# links NAME [FLAG...]: writes the doctor's findings to $dir/NAME.log, and prints those about links. The status is 1 if
# something should be fixed.
links() {
  local name=$1 status=0
  shift
  "${on_nodes[@]}" "$program" doctor --pairs --halve "$@" >"$dir/$name.log" 2>&1 || status=$?
  [[ $status -le 1 ]] || fail "doctor --pairs --halve ends with $status"
  grep -q 'Bandwidth between nodes' "$dir/$name.log" || fail "no map of the nodes"
  grep -q '^Across each cut' "$dir/$name.log" || fail "no table of cuts"
  sed -n '/^Bandwidth/,/^$/p; /^Bisection/,$p' "$dir/$name.log"
}
says() { grep -q "$2" "$dir/$1.log" || fail "$1: no line '$2'"; }
says_not() { ! grep -q "$2" "$dir/$1.log" || fail "$1: $(grep "$2" "$dir/$1.log")"; }

# measured NAME: measures and checks links with the function NAME. If the machine stops for a second, any link looks
# slow. So the test fails only if three measurements are wrong.
measured() {
  local try
  for try in 1 2 3; do
    if ("$1"); then return; fi
  done
  fail "$1: wrong in each of three measurements"
}
