"""Language models: access to any provider, recorded answers, budgets, price tables, scripted and local models.

``open_model(name, ...)`` gives a :class:`Model` that is asked with an
:class:`~tradeassay.core.dialogue.AskModel` and answers with a :class:`~tradeassay.core.dialogue.ModelReply`,
whatever goes wrong. Importing this package imports no provider: Inspect and the engines are loaded when a model
that needs them is opened.
"""

from __future__ import annotations

from tradeassay.llm.budget import Budget, Reservation, estimate_request, estimate_tokens, most_request, most_tokens
from tradeassay.llm.cassette import CassetteMismatch, CassetteStore, RecordedAnswer, answer_key
from tradeassay.llm.local import LocalModel, LocalSettings, find_local_model, get_local_model, local_models
from tradeassay.llm.model import Model, ModelName, ModelParams, QuestionPlace, parse_name
from tradeassay.llm.open import Access, check_model, open_model
from tradeassay.llm.prompting import fenced_blocks, parse_object
from tradeassay.llm.retry import RetryPolicy
from tradeassay.llm.scripted import ScriptedModel, scripted_models
from tradeassay.llm.tables import Cutoff, CutoffTable, Price, PriceTable, Tokens, load_cutoffs, load_prices
from tradeassay.llm.text_tools import find_calls
