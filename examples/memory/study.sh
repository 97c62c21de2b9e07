#!/bin/bash
# The fourth and the fifth study on one card: learn, ask at the gate, play. Everything that needs no GPU is made before.
#
#   STUDY=always ./study.sh MODEL.gguf TOKENIZER NAME      (NAME: qwen-main, smollm2-main, ...)
#
# needs packed.npz, probes.jsonl and gate.jsonl in the folder it is called from. TOTAL seconds are all there is, at
# most LEARN of them for the training. What comes out is in results/NAME, what was done when in study.log.
set -u
MODEL=$1 TOKENIZER=$2 NAME=$3 HERE=$(cd "$(dirname "$0")" && pwd)
TOTAL=${TOTAL:-1600} LEARN=${LEARN:-620} DEVICE=${DEVICE:-cuda} PORT=${PORT:-8111}
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
say "learning for at most $LEARN s"
python "$HERE/finetune.py" "$MODEL" $HOW --probes probes.jsonl --seconds "$LEARN" --device "$DEVICE" --out "$NAME.pt" \
  > "learn-$NAME.log" 2>&1 || { say "learning failed: see learn-$NAME.log"; stop; exit 1; }
say "learned: $(tail -1 "learn-$NAME.log")"
for port in $PORTS; do
  until curl -sf "http://127.0.0.1:$port/health" > /dev/null; do
    kill -0 "${PIDS[$((port - PORT))]}" 2> /dev/null || { say "a server ended: see server-$NAME-$port.log"; stop; exit 1; }
    sleep 1
  done
done
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
