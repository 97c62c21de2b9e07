#!/bin/bash
# The fourth study on one card: learn, pass the gate, play. Everything that needs no GPU is made before.
#
#   ./study.sh MODEL.gguf TOKENIZER NAME      (NAME: qwen-main, smollm2-main, ...)
#
# needs packed.npz, probes.jsonl and gate.jsonl in the folder it is called from. TOTAL seconds are all there is, LEARN
# of them for the first training. What comes out is in results/NAME, what was done when in study.log.
set -u
MODEL=$1 TOKENIZER=$2 NAME=$3 HERE=$(cd "$(dirname "$0")" && pwd)
TOTAL=${TOTAL:-1500} LEARN=${LEARN:-690} AGAIN=${AGAIN:-90} DEVICE=${DEVICE:-cuda} PORT=${PORT:-8111}
PLAYERS=${PLAYERS:-60} ASKERS=${ASKERS:-10} CLOSERS=${CLOSERS:-10} SLOTS=${SLOTS:-160} WORLDS=${WORLDS:-0-99}
export STUDY=orders TRADEASSAY_LOCAL_SERVER=http://127.0.0.1:$PORT/v1
HOW="--tokenizer $TOKENIZER --packed packed.npz --rows 4 --answer-rows 8 --whole 0.25 --figures --early 0.6 --late 0.35 --short 0.45"
say() { echo "$SECONDS s: $*" | tee -a study.log; }
serve() {  # in a group of its own: its front is a process too, and must not outlive it at the port
  setsid python "$HERE/../gpu_server.py" "$MODEL" --weights "$1" --tokenizer "$TOKENIZER" --context 3584 --slots "$SLOTS" --greedy \
    --port "$PORT" --device "$DEVICE" > "server-$NAME.log" 2>&1 &
  SERVER=$!
}
ready() {
  until curl -sf "http://127.0.0.1:$PORT/health" > /dev/null; do
    kill -0 "$SERVER" 2> /dev/null || { say "the server ended: see server-$NAME.log"; exit 1; }
    sleep 1
  done
}
stop() { kill -- -"$SERVER"; wait "$SERVER" 2> /dev/null; }
gate() {
  python "$HERE/gate.py" gate.jsonl "$TRADEASSAY_LOCAL_SERVER" --at-once "$SLOTS" --out "gate-$NAME$1.json" | tee -a study.log
}
set -o pipefail
python "$HERE/worlds.py" store > store.log 2>&1 &
STORED=$!
say "learning for $LEARN s"
serve "$NAME.pt"   # it waits for the weights
python "$HERE/finetune.py" "$MODEL" $HOW --probes probes.jsonl --seconds "$LEARN" --device "$DEVICE" --out "$NAME.pt" \
  > "learn-$NAME.log" 2>&1 || { say "learning failed: see learn-$NAME.log"; stop; exit 1; }
say "learned: $(tail -1 "learn-$NAME.log")"
ready
say "the gate"
if ! gate ""; then
  say "missed: answers once more"
  stop
  serve "$NAME-again.pt"
  python "$HERE/finetune.py" "$MODEL" $HOW --again "$NAME.pt" --rate 3e-5 --seconds "$AGAIN" --device "$DEVICE" \
    --out "$NAME-again.pt" > "again-$NAME.log" 2>&1 || cp "$NAME.pt" "$NAME-again.pt"  # it goes on as it was
  say "practised again: $(tail -1 "again-$NAME.log")"
  ready
  gate "-again"
fi
wait "$STORED" || say "not all worlds are stored: see store.log"
say "playing"
# Changed markets come before what was traded is asked for: the third study had no time for them. Verdicts need no GPU.
LEFT=$((TOTAL - SECONDS))
[ "$LEFT" -gt 60 ] || { say "no time is left to play"; stop; exit 1; }
timeout "$LEFT" python "$HERE/drive.py" "local/dose-$NAME" "results/$NAME" --worlds "$WORLDS" \
  --parts recall,play,counterfactual,traded --players "$PLAYERS" --askers "$ASKERS" --closers "$CLOSERS" \
  --seconds $((LEFT - 30)) > "drive-$NAME.log" 2>&1
say "played: $(grep -c '"part": "play".*"failed": null' "results/$NAME/drive.jsonl") worlds"
stop
