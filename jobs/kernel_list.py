#!/usr/bin/env python3
"""Lists the GPU kernels and copies in a trace of `shardmark train --trace`: how often, how long, what share of the steps.

usage: kernel_list.py TRACE.json STEPS     STEPS: how many steps the trace holds
"""
import collections
import json
import sys

trace, steps = sys.argv[1], int(sys.argv[2])
events = [e for e in json.load(open(trace))["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
if not events:
    sys.exit(f"{trace} holds no kernel: was it made on a GPU?")
time_us, count = collections.Counter(), collections.Counter()
for event in events:
    time_us[event["name"]] += event["dur"]
    count[event["name"]] += 1
busy = sum(time_us.values())
span = max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)
print(f"{sum(count.values()) / steps:.0f} kernels and copies a step; they take {busy / steps / 1000:.2f} ms of {span / steps / 1000:.2f} ms")
print("ms/step   %  calls/step  kernel")
for name, us in time_us.most_common():
    print(f"{us / steps / 1000:7.3f} {100 * us / busy:5.1f} {count[name] / steps:8.1f}  {name[:150]}")
