#!/usr/bin/awk -f
# Lines "name<TAB>ratio", one per launch, become one line per name: the median over launches, the least and the greatest.
BEGIN { FS = "\t" }
{
  print "launch: " $0 > "/dev/stderr"
  if (!($1 in count)) order[++names] = $1
  values[$1, ++count[$1]] = $2
}
END {
  printf "%-40s %8s %8s %8s %8s\n", "step time", "launches", "median", "least", "most"
  for (i = 1; i <= names; ++i) {
    name = order[i]
    n = count[name]
    for (a = 1; a < n; ++a)
      for (b = 1; b <= n - a; ++b)
        if (values[name, b] > values[name, b + 1]) {
          swap = values[name, b]; values[name, b] = values[name, b + 1]; values[name, b + 1] = swap
        }
    median = (values[name, int((n + 1) / 2)] + values[name, int(n / 2) + 1]) / 2
    printf "%-40s %8d %8.3f %8.3f %8.3f\n", name, n, median, values[name, 1], values[name, n]
  }
}
