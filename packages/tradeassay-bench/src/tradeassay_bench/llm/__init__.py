"""Language models: providers, recorded answers, budgets, prices, scripted and local models.

``open_model(name, ...)`` opens a :class:`Model`. It takes an
:class:`~tradeassay_bench.core.dialogue.AskModel` and always returns a
:class:`~tradeassay_bench.core.dialogue.ModelReply`, also for errors. Importing this package imports
no provider. Inspect and the engines are loaded when a model that needs them is opened.
"""

from __future__ import annotations

from tradeassay_bench.llm.budget import (
    Budget as Budget,
    estimate_request as estimate_request,
    estimate_tokens as estimate_tokens,
    most_request as most_request,
    most_tokens as most_tokens,
)
from tradeassay_bench.llm.local import (
    LocalModel as LocalModel,
    LocalSettings as LocalSettings,
    find_local_model as find_local_model,
    get_local_model as get_local_model,
    local_models as local_models,
)
from tradeassay_bench.llm.model import (
    Model as Model,
    ModelName as ModelName,
    ModelParams as ModelParams,
    QuestionPlace as QuestionPlace,
    RetryPolicy as RetryPolicy,
    parse_name as parse_name,
)
from tradeassay_bench.llm.open import (
    Access as Access,
    check_model as check_model,
    open_model as open_model,
)
from tradeassay_bench.llm.prompting import (
    fenced_blocks as fenced_blocks,
    parse_object as parse_object,
)
from tradeassay_bench.llm.recording import (
    RecordingMismatch as RecordingMismatch,
    RecordingStore as RecordingStore,
    answer_key as answer_key,
)
from tradeassay_bench.llm.scripted import (
    ScriptedModel as ScriptedModel,
    scripted_models as scripted_models,
)
from tradeassay_bench.llm.tables import (
    Cutoff as Cutoff,
    CutoffTable as CutoffTable,
    Price as Price,
    PriceTable as PriceTable,
    Tokens as Tokens,
    load_cutoffs as load_cutoffs,
    load_prices as load_prices,
)
from tradeassay_bench.llm.text_tools import find_calls as find_calls
