"""An agent in a process of its own: a request per line in, an answer per line out.

Any language will do.
"""

import json
import sys

for line in sys.stdin:
    asked = json.loads(line)
    symbol = asked["symbol"][0]
    momentum = asked["momentum"][symbol]
    if momentum is None:
        answer = {"recommended_action": "HOLD", "reasoning": "no month of history yet"}
    else:
        answer = {
            "recommended_action": "BUY" if momentum > 0 else "SELL",
            "reasoning": f"month {momentum:+.1%}",
        }
    print(json.dumps({"id": asked["id"], **answer}), flush=True)
