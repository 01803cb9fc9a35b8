# Sourced by tests of --junit, which must define fail().
junit_schema=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../data/junit.xsd")

# valid_junit FILE: the file is valid by tests/data/junit.xsd, which also detects missing elements.
valid_junit() {
  command -v xmllint >/dev/null || { echo "left out: the schema of JUnit files needs xmllint, which is not here"; return 0; }
  xmllint --noout --schema "$junit_schema" "$1" 2>said || fail "$1 is not valid: $(cat said)"
  sed 's/ timestamp="[^"]*"//' "$1" | xmllint --noout --schema "$junit_schema" - 2>/dev/null && fail "the schema takes a suite without its time"
  return 0
}
