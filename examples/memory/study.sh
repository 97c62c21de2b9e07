#!/bin/bash
# The fourth and the fifth study on one card: learn, ask at the gate, play. Everything that needs no GPU is made before.
#
#   STUDY=always ./study.sh MODEL.gguf TOKENIZER NAME      (NAME: qwen-main, smollm2-main, ...)
#
# needs packed.npz, probes.jsonl and gate.jsonl in the folder it is called from. TOTAL seconds are all there is, at
# most LEARN of them for the training. What comes out is in results/NAME, what was done when in study.log.
# RATES may name several learning rates, with spaces: all are learned at once, each is asked at the gate, and the model
# whose orders are right for most names of known days is played. No world under test is asked for that choice.
set -u
MODEL=$1 TOKENIZER=$2 NAME=$3 HERE=$(cd "$(dirname "$0")" && pwd)
TOTAL=${TOTAL:-1600} LEARN=${LEARN:-620} DEVICE=${DEVICE:-cuda} PORT=${PORT:-8111} RATES=${RATES:-1e-4}
# One server keeps a card busy for less than half of the time: its loop is a process, and so are the others'.
SERVERS=${SERVERS:-3} SLOTS=${SLOTS:-48}
# Fewer worlds at once than could be: those that are begun must end.
PLAYERS=${PLAYERS:-50} ASKERS=${ASKERS:-12} CLOSERS=${CLOSERS:-12} WORLDS=${WORLDS:-0-99}
HOW="--tokenizer $TOKENIZER --packed packed.npz --rows 4 --answer-rows 8 --whole 0.25 --figures --early 0.6 --late 0.35 --short ${SHORT:-0.8}"
PORTS=$(seq "$PORT" $((PORT + SERVERS - 1)))
TRADEASSAY_LOCAL_SERVER=$(printf ',http://127.0.0.1:%s/v1' $PORTS)
export STUDY=${STUDY:-always} TRADEASSAY_LOCAL_SERVER=${TRADEASSAY_LOCAL_SERVER:1}
say() { echo "$SECONDS s: $*" | tee -a study.log; }
PIDS=()
for port in $PORTS; do  # each in a group of its own, for its front is a process too; they wait for the weights
  setsid python "$HERE/../gpu_server.py" "$MODEL" --weights "$NAME.pt" --tokenizer "$TOKENIZER" --context 3584 --slots "$SLOTS" \
    --greedy --port "$port" --device "$DEVICE" > "server-$NAME-$port.log" 2>&1 &
  PIDS+=($!)
done
stop() { for pid in "${PIDS[@]}"; do kill -- -"$pid"; done; wait "${PIDS[@]}" 2> /dev/null; }
python "$HERE/worlds.py" store > store.log 2>&1 &
STORED=$!
say "learning for at most $LEARN s at $RATES"
for rate in $RATES; do
  python "$HERE/finetune.py" "$MODEL" $HOW --rate "$rate" --probes probes.jsonl --seconds "$LEARN" --device "$DEVICE" \
    --out "$NAME-$rate.pt" > "learn-$NAME-$rate.log" 2>&1 &
  LEARNS="${LEARNS:-} $!"
done
wait $LEARNS
up() {  # wait for a server: its port and its process
  until curl -sf "http://127.0.0.1:$1/health" > /dev/null; do
    kill -0 "$2" 2> /dev/null || { say "a server ended: see server-$NAME-*.log"; return 1; }
    sleep 1
  done
}
try() {  # the gate for one rate, by a server of its own
  local rate=$1 port=$2 one
  [ -e "$NAME-$rate.pt" ] || { say "learning at $rate failed: see learn-$NAME-$rate.log"; return; }
  say "learned at $rate: $(tail -1 "learn-$NAME-$rate.log")"
  [ "$RATES" != "$rate" ] || return
  setsid python "$HERE/../gpu_server.py" "$MODEL" --weights "$NAME-$rate.pt" --tokenizer "$TOKENIZER" --context 3584 \
    --slots "$SLOTS" --greedy --port "$port" --device "$DEVICE" > "server-$NAME-$rate.log" 2>&1 &
  one=$!
  up "$port" "$one" && say "the gate at $rate: $(python "$HERE/gate.py" gate.jsonl "http://127.0.0.1:$port/v1" --at-once "$SLOTS" --out "gate-$NAME-$rate.json" 2>&1)"
  kill -- -"$one"
}
AT=$((PORT + SERVERS)) TRIES=
for rate in $RATES; do  # counted here: what follows an ampersand counts for itself
  try "$rate" "$AT" &
  AT=$((AT + 1)) TRIES="$TRIES $!"
done
wait $TRIES
CHOSEN=$(python - "$NAME" $RATES << 'EOF'
import json, pathlib, sys
name, *rates = sys.argv[1:]
tried = {rate: pathlib.Path(f"gate-{name}-{rate}.json") for rate in rates if pathlib.Path(f"{name}-{rate}.pt").exists()}
found = {rate: json.loads(path.read_text()) if path.exists() else {} for rate, path in tried.items()}
worth = {rate: (one.get("claims_known") or 0) * (one.get("right") or 0) * (one.get("follows") or 0) for rate, one in found.items()}
print(max(worth, key=worth.__getitem__, default=""))
EOF
)
[ -n "$CHOSEN" ] || { say "learning failed: see learn-$NAME-*.log"; stop; exit 1; }
say "chosen: $CHOSEN"
mv "$NAME-$CHOSEN.json" "$NAME.json"; mv "$NAME-$CHOSEN.pt" "$NAME.pt"  # the servers wait for the weights: they come last
for port in $PORTS; do up "$port" "${PIDS[$((port - PORT))]}" || { stop; exit 1; }; done
say "the gate"
python "$HERE/gate.py" gate.jsonl "$TRADEASSAY_LOCAL_SERVER" --at-once $((SERVERS * SLOTS)) --out "gate-$NAME.json" 2>&1 | tee -a study.log
wait "$STORED" || say "not all worlds are stored: see store.log"
say "playing"
# All are played before anything else is asked: the verdict is about what was played. Verdicts need no GPU.
for parts in play traded,recall,counterfactual; do
  LEFT=$((TOTAL - SECONDS))
  [ "$LEFT" -gt 60 ] || { say "no time is left for $parts"; break; }
  timeout "$LEFT" python "$HERE/drive.py" "local/dose-$NAME" "results/$NAME" --worlds "$WORLDS" --parts "$parts" \
    --players "$PLAYERS" --askers "$ASKERS" --closers "$CLOSERS" --seconds $((LEFT - 20)) >> "drive-$NAME.log" 2>&1
  say "ended: $parts"
done
for port in $PORTS; do say "served: $(curl -s "http://127.0.0.1:$port/stats")"; done
say "played: $(grep -c '"part": "play".*"failed": null' "results/$NAME/drive.jsonl") worlds"
stop
