# For tests of --junit, to be sourced; fail() is the test's own.
junit_schema=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../data/junit.xsd")

# valid_junit FILE: by tests/data/junit.xsd, which finds what is missing, too.
valid_junit() {
  command -v xmllint >/dev/null || { echo "left out: the schema of JUnit files needs xmllint, which is not here"; return 0; }
  xmllint --noout --schema "$junit_schema" "$1" 2>said || fail "$1 is not valid: $(cat said)"
  sed 's/ timestamp="[^"]*"//' "$1" | xmllint --noout --schema "$junit_schema" - 2>/dev/null && fail "the schema takes a suite without its time"
  return 0
}
