#!/usr/bin/env bash
# Start two Ray nodes on two loopback addresses of this machine, score on both, and then score again
# with the second node killed during the run. Both runs must give the scores of a single process.
#
# Run it: bash examples/two_ray_nodes.sh [METRIC] [PAIRS]     (needs: pip install 'evenmatch[ray]')
set -euo pipefail

metric=${1:-align(vectors=hashed, alignment=lsa)}
pairs=${2:-20000}
# Ray replaces 127.0.0.1 by the machine's external address, so the nodes use other loopback addresses.
first=127.0.0.2 second=127.0.0.3 port=6399

export RAY_USAGE_STATS_ENABLED=0
# Nodes and driver authenticate with a shared token.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
RAY_AUTH_TOKEN=$(python -c "import secrets; print(secrets.token_hex(32))")

folder=$(mktemp -d)
cd "$folder"

stop() { # stop a node: its process and the child processes
    local children
    children=$(pgrep -P "$1" || true)
    # shellcheck disable=SC2086  # one argument per process
    kill -9 $1 $children 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
nodes=()
leave() {
    [ $? = 0 ] || tail -n 20 first.log second.log >&2 || true
    for node in "${nodes[@]}"; do stop "$node"; done
    rm -rf "$folder"
}
trap leave EXIT

compare() { # compare a file of scores with that of the local run
    python - "$1" <<'COMPARE'
import json, sys

mine, local = ([json.loads(line) for line in open(name)] for name in (sys.argv[1], "local.jsonl"))
assert [row["row"] for row in mine] == [row["row"] for row in local], "the rows differ"
largest = max(abs(a["value"] - b["value"]) for a, b in zip(mine, local))
assert largest < 1e-6, largest
print(len(mine), "rows as in one process, largest difference", largest)
COMPARE
}

python - "$pairs" > pairs.jsonl <<'PAIRS'
import json, sys

for n in range(int(sys.argv[1])):
    words = [f"word{n * k % 97}" for k in range(1, 20)]
    print(json.dumps({"candidate": " ".join(words[3:]), "reference": " ".join(words)}))
PAIRS

ray start --head --block --node-ip-address=$first --port=$port --num-cpus=1 \
    --include-dashboard=false --temp-dir="$folder/ray" > first.log 2>&1 &
nodes+=($!)
until grep -q "Ray runtime started" first.log; do
    kill -0 "${nodes[0]}"
    sleep 1
done
ray start --block --address=$first:$port --node-ip-address=$second --num-cpus=1 > second.log 2>&1 &
nodes+=($!)
python - $first:$port <<'WAIT'
import sys, time, ray

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
end = time.monotonic() + 120
while sum(node["Alive"] for node in ray.nodes()) < 2:
    assert time.monotonic() < end, "the second node did not start"
    time.sleep(0.5)
for node in ray.nodes():
    print("node", node["NodeManagerAddress"], "with", int(node["Resources"]["CPU"]), "CPU")
WAIT

shared=(-m "$metric" --on ray --ray-address "$first:$port" --shard-rows 200)
evenmatch score pairs.jsonl -m "$metric" --out local.jsonl > local.txt
echo "== on both nodes"
evenmatch score pairs.jsonl "${shared[@]}" --out both.jsonl
compare both.jsonl

echo "== the second node is killed on the way"
evenmatch score pairs.jsonl "${shared[@]}" --out killed.jsonl > killed.txt &
run=$!
until [ "$(cat killed.jsonl.parts/manifest.jsonl 2>/dev/null | wc -l)" -gt 10 ]; do
    kill -0 $run
    sleep 0.1
done
stop "${nodes[1]}"
echo "killed after $(($(wc -l < killed.jsonl.parts/manifest.jsonl) - 1)) shards"
wait $run
compare killed.jsonl
