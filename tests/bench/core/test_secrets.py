"""Configured secrets are removed, plain and encoded; what merely looks like one stays and is
counted.
"""

import base64
import codecs
import collections
import io
import itertools
import json
import logging
import re
import sys
import traceback
from urllib.parse import quote, quote_plus

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from tradeassay.core import secrets
from tradeassay.core.screen import StackedTable, clean_log, clean_screen
from tradeassay.core.secrets import REMOVED, Secrets
from tradeassay_bench.core.drive import fault_of

KEY = "sk-proj-Qz7_wR4tYk2Lm9Xc5Vb8Nh3Jg6+Fd1/Sa0PoIu"


def knowing(*keys: str, **settings: str) -> Secrets:
    made = Secrets()
    for key in keys:
        made.add(key)
    made.add_settings(settings)
    return made


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(secrets, "KNOWN", knowing(KEY))
    return secrets.KNOWN


def spellings(key: str) -> list[str]:
    """What a careless server or log makes of a header, as the page on threats lists it."""
    raw = key.encode()
    texts = [
        key,
        raw.hex(),
        raw.hex().upper(),
        json.dumps(key)[1:-1],
        key.replace("/", "\\/"),
        quote(key, safe=""),
    ]
    texts += [quote(key), f"{key[:20]}***", f"...{key[-12:]}"]
    for before in ("", "u", "u:", "Bearer ", "user:"):
        for after in ("", "\n", "!!"):
            whole = (before + key + after).encode()
            texts += [base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode()]
    return texts


@pytest.mark.parametrize("spelled", spellings(KEY))
def test_every_spelling_goes(known, spelled):
    cleaned = known.clean(f'{{"seen": "{spelled}", "rest": 1}}'.encode()).decode()
    assert (
        REMOVED in cleaned
        and cleaned.startswith('{"seen": "')
        and cleaned.endswith('", "rest": 1}')
    )
    core = base64.b64encode(KEY.encode())[4:-4].decode()
    assert spelled not in cleaned and core not in cleaned
    assert len(cleaned) - len(REMOVED) - 22 <= max(20, len(spelled) // 4), (
        "at most the ends of groups are left"
    )


ENCODERS = {
    "percent": lambda sign: "".join(f"%{byte:02X}" for byte in sign.encode()),
    "percent, lower": lambda sign: "".join(f"%{byte:02x}" for byte in sign.encode()),
    "JSON": lambda sign: f"\\u{ord(sign):04x}",
    "JSON, upper": lambda sign: f"\\u{ord(sign):04X}",
    "plain": str,
}
"""How one sign of a key may be written."""


def encoded(text: str, *ways: str) -> str:
    """Return a text with every sign encoded, once by each of the ways."""
    for way in ways:
        text = "".join(map(ENCODERS[way], text))
    return text


@pytest.mark.parametrize("way", ENCODERS)
def test_a_key_goes_when_every_sign_is_encoded(known, way):
    cleaned = known.clean(f"before {encoded(KEY, way)} after".encode()).decode()
    assert cleaned == f"before {REMOVED} after"


@pytest.mark.parametrize("inner", ENCODERS)
@pytest.mark.parametrize("outer", ENCODERS)
def test_a_key_goes_when_it_is_encoded_twice(known, inner, outer):
    assert known.clean(f"({encoded(KEY, inner, outer)})".encode()).decode() == f"({REMOVED})"


def test_a_key_goes_when_one_sign_of_it_is_encoded(known):
    for way in ENCODERS:
        for at in (0, 1, len(KEY) // 2, len(KEY) - 1):
            text = KEY[:at] + encoded(KEY[at], way) + KEY[at + 1 :]
            assert known.clean(f"({text})".encode()).decode() == f"({REMOVED})", (way, at)


@given(st.lists(st.sampled_from(list(ENCODERS)), min_size=len(KEY), max_size=len(KEY)))
def test_a_key_goes_however_its_signs_are_encoded(ways):
    text = "".join(map(encoded, KEY, ways))
    assert knowing(KEY).clean(f"({text})".encode()).decode() == f"({REMOVED})"


def test_base64_and_hexadecimal_go_when_they_are_encoded_again(known):
    """Base64 has signs that JSON, addresses and pages escape."""
    for text in (base64.b64encode(KEY.encode()).decode(), KEY.encode().hex()):
        for way in ENCODERS:
            assert known.clean(encoded(text, way).encode()).decode().startswith(REMOVED), way


def test_signs_beyond_ascii_go():
    known = knowing("pä&ss_w😀rd-1a2b3c")
    for text in (
        "p%C3%A4%26ss%5Fw%F0%9F%98%80rd%2D1a2b3c",
        "p\\u00e4&ss_w\\ud83d\\ude00rd-1a2b3c",
    ):
        assert known.clean(f"<{text}>".encode()).decode() == f"<{REMOVED}>", text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ab12cd34é", "ab12cd34è"),  # both begin with one byte
        ("éab12cd34", "©ab12cd34"),  # both end with one byte
        ("ab12cd34\\", "ab12cd34\\中"),
    ],
)
def test_no_sign_beyond_ascii_is_cut_in_two(key, text):
    known = knowing(key)
    assert REMOVED in known.clean(text.encode()).decode()


def test_json_stays_json_where_signs_of_a_key_are_escaped(known):
    line = f'{{"a": "x\\\\{encoded(KEY, "JSON")}\\"y", "b": "{encoded(KEY, "JSON")}"}}'
    assert json.loads(known.clean(line.encode())) == {"a": f'x\\{REMOVED}"y', "b": REMOVED}


def test_a_command_shows_no_key_however_it_was_given(monkeypatch, tmp_path, capsys):
    from tradeassay.cli import main

    monkeypatch.setattr(secrets, "KNOWN", knowing())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(secrets, "environment_read", False)
    for way in ENCODERS:
        main(["arena", "standings", "--db", f"{tmp_path}/{encoded(KEY, way)}.db"])
        said = capsys.readouterr()
        assert REMOVED in said.err and encoded(KEY[8:20], way) not in said.err, way


@given(st.integers(8, 34), st.integers(12, 40), st.text(max_size=20), st.text(max_size=20))
def test_any_piece_of_twelve_goes(start, size, before, after):
    known = knowing(KEY)
    piece = KEY[start : start + size]
    if len(piece) < 12:
        return
    raw = (before + piece + after).encode("utf-8", "surrogatepass")
    assert piece.encode() not in known.clean(raw)


@pytest.mark.parametrize("at", range(20, len(KEY) - 12))
def test_both_sides_of_a_changed_sign_go(known, at):
    """Their places are those of one key that is there twice, and they are two pieces."""
    both = f"{KEY}, {KEY[:at]}*{KEY[at + 1 :]}."
    assert known.clean(both.encode()).decode() == f"{REMOVED}, {REMOVED}*{REMOVED}."


def test_half_of_a_shorter_key_goes():
    known = knowing("a7Bq2Zx9Kd4Wm1Pv")
    assert known.clean(b"it begins a7Bq2Zx9 and so on") == f"it begins {REMOVED} and so on".encode()
    assert known.clean(b"it begins a7Bq") == b"it begins a7Bq"


@pytest.mark.parametrize("cut", range(20, len(KEY) - 11))
def test_split_over_two_messages_both_parts_go(known, cut):
    spoken = json.dumps(
        [{"role": "assistant", "text": KEY[:cut]}, {"role": "assistant", "text": KEY[cut:]}]
    )
    assert [one["text"] for one in json.loads(known.clean(spoken.encode()))] == [REMOVED, REMOVED]


def test_several_keys_in_one_text_go_and_the_rest_stays(known):
    known.add("Bearer a7Bq2Zx9Kd4Wm1Pv")  # an authorization is its token
    text = f"{KEY} and a7Bq2Zx9Kd4Wm1Pv, {KEY}{KEY}"
    assert known.clean(text.encode()).decode() == f"{REMOVED} and {REMOVED}, {REMOVED}"


@pytest.mark.parametrize(
    "honest",
    [
        base64.b64encode(bytes(range(256)) * 20),
        "％２０２４年，Ａ股：<b>涨</b> &amp; %20%2F=3D &#8217;s \\u8d35\\u5dde ＣＰＩ, sha256 ".encode()
        + b"ab12" * 16,
        "".join(f"{one:08.3f} " for one in range(3000)).encode(),
    ],
)
def test_honest_texts_that_look_alike_stay(known, honest):
    assert known.clean(honest) is honest


def test_what_is_outside_the_threat_is_known_to_stay(known):
    """Ciphers, other alphabets and keys torn into letters: docs/concepts/threat-model.md says
    so.
    """
    for hidden in (
        codecs.encode(KEY, "rot13"),
        base64.b85encode(KEY.encode()).decode(),
        " ".join(KEY),
        KEY[::-1],
    ):
        assert known.clean(hidden.encode()) == hidden.encode()


def test_json_stays_json():
    known = knowing('pa"ss\\wo\trd-1234-xyz')
    for text in ('pa"ss\\wo\trd-1234-xyz', 'before "pa"ss\\wo\trd-1234-xyz" after\\'):
        line = msgspec.json.encode({"a": text, "b": json.dumps(text)})
        assert "1234" not in json.loads(known.clean(line))["a"]


def test_words_short_values_paths_and_public_beginnings_stay():
    settings = {
        "A_API_KEY": "none",
        "B_TOKEN": "",
        "C_SECRET": "password",
        "E_TOKEN": "123456789012345",
    }
    settings |= {"D_SECRET_FILE": "/run/secrets/some/file", "MAX_TOKENS": "32768-abc-1234567"}
    known = knowing(**settings, F_KEYBOARD="qwertz-1234567890")
    assert not known.values
    known.add(KEY)
    plain = b"keys begin with sk-proj- here, the password is none, and 32768-abc-1234567 is not one"
    assert known.clean(plain) is plain
    known.add_settings({"G_API_KEY": "super-secret-key-value"})
    assert known.clean(b"super-secret-key") == b"super-secret-key"
    assert known.clean(b"it is super-secret-key-value.") == f"it is {REMOVED}.".encode()


@pytest.mark.parametrize(
    "key", ["eyJhbGciOiJIUzI1NiJ9.ab1", "-----BEGIN KEY-----\nMII1", "sk-ant-api03-x1"]
)
def test_a_key_that_hardly_goes_on_after_a_common_beginning_goes(key):
    known = knowing(key)
    assert known.clean(f"<{key}>".encode()).decode() == f"<{REMOVED}>"


@pytest.mark.parametrize("order", [*itertools.permutations(("", "Ty6Ug", "Ty6UgRe3Ho8Nc5Xs"))])
def test_keys_that_begin_alike_hide_nothing_of_each_other(order):
    begins = "a7Bq2Zx9Kd4Wm1Pv"
    known = knowing(*(begins + end for end in order))
    longest = begins + max(order, key=len)
    for start, end in itertools.combinations(range(len(longest) + 1), 2):
        if end - start >= 12:
            assert known.clean(f"<{longest[start:end]}>".encode()) == f"<{REMOVED}>".encode(), (
                start,
                end,
            )


def test_passwords_inside_addresses_are_secrets():
    known = knowing(HTTPS_PROXY="http://me:pr0xy%2Fpa55@proxy:80")
    known.add_address("postgresql://arena:hunter22@db/x")
    for password in (b"pr0xy/pa55", b"pr0xy%2Fpa55", b"hunter22"):
        assert known.clean(b"at " + password + b"!") == f"at {REMOVED}!".encode()


def test_lookalikes_are_counted_and_kept(known):
    text = "use sk-0123456789abcdef0123, or Authorization: Bearer 0123456789abcdefghij"
    assert secrets.clean_foreign(text) == text
    assert known.lookalikes == 2
    assert "look like a key" in str(secrets.lookalikes())


def test_errors_are_scrubbed_with_what_they_wrap(known):
    class Told(Exception):
        def __init__(self, message: str) -> None:
            super().__init__(message)
            self.message = message
            self.body = {"error": {"message": [message]}}

    try:
        try:
            raise ValueError(f"inner {KEY}")
        except ValueError as inner:
            raise Told(f"outer {KEY}") from inner
    except Told as error:
        assert str(fault_of(error)) == f"Told: outer {REMOVED}"
        secrets.scrub(error)
        assert error.body == {"error": {"message": [f"outer {REMOVED}"]}}
        assert (
            error.message == str(error) == f"outer {REMOVED}"
            and str(error.__cause__) == f"inner {REMOVED}"
        )


def test_screen_and_log_show_nothing(known, capsys):
    written = io.StringIO()
    with clean_screen(), clean_log():
        handler = logging.StreamHandler(written)
        logging.getLogger("noisy").addHandler(handler)
        try:
            print(f"out {KEY}")
            sys.stderr.writelines([f"err {KEY}\n"])
            logging.getLogger("noisy").warning("with %s", KEY)
            try:
                raise ValueError(KEY)
            except ValueError:
                logging.getLogger("noisy").exception("failed")
        finally:
            logging.getLogger("noisy").removeHandler(handler)
    shown = capsys.readouterr()
    assert shown.out == f"out {REMOVED}\n" and f"err {REMOVED}\n" in shown.err
    assert (
        f"with {REMOVED}" in written.getvalue() and f"ValueError: {REMOVED}" in written.getvalue()
    )
    assert KEY not in written.getvalue() + shown.out + shown.err


def test_nothing_is_copied_where_there_is_nothing(known):
    tree = {"a": [1, "b", {"c": ("d", None)}]}
    assert secrets.without_secrets(tree) is tree
    text = "plain"
    assert secrets.without_secrets(text) is text


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("https://host/agent?api_key=abcdefgh12345", True),
        ("https://host/agent?key=AIzaSyA-abcdefgh12345", True),
        ("https://host/agent?model=large&seed=7", False),
        ("python agent.py --api-key abcdefgh12345", True),
        ("env MY_TOKEN=abcdefgh12345 python agent.py", True),
        ("python agent.py --token $MY_TOKEN", False),
        ("python agent.py --tokens 4096", False),
        (f"python agent.py {KEY}", True),
        ("python agent.py", False),
    ],
)
def test_addresses_and_commands_with_a_key_in_them_are_known(text, held):
    assert secrets.holds_key(text) is held


SPECIAL = 'pa"s\\w&<ö>r/d=1 x'


def written(key: str) -> dict[str, str]:
    """What servers of other languages make of a key with signs that need an escape."""
    escaped = json.dumps(key)[1:-1]
    for_html = re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", escaped)
    percent = quote(key, safe="")
    return {
        "lower-case percent": re.sub("%..", lambda code: code[0].lower(), percent),
        "a form": quote_plus(key),
        "JSON for HTML": for_html,
        "JSON by .NET": re.sub(
            '[<>&"+]|[^ -~]', lambda sign: f"\\u{ord(sign[0]):04X}", key.replace("\\", "\\\\")
        ),
        "JSON in JSON": json.dumps(escaped)[1:-1],
        "JSON in JSON, slashes escaped": json.dumps(escaped.replace("/", "\\/"))[1:-1],
        "an address in base64": base64.b64encode(f"https://h/?key={percent}&a=1".encode()).decode(),
        "JSON in base64": base64.b64encode(json.dumps({"k": key}).encode()).decode(),
    }


@pytest.mark.parametrize("way", written(SPECIAL))
def test_signs_that_need_an_escape_go_however_they_are_escaped(way):
    known = knowing(SPECIAL)
    text = written(SPECIAL)[way]
    cleaned = known.clean(f"<<{text}>>".encode()).decode()
    rest = "" if "base64" not in way else text[:40]  # what stands before the key
    assert REMOVED in cleaned and len(cleaned) <= len(f"<<{REMOVED}>>") + len(rest)


@pytest.mark.parametrize(
    ("key", "honest"),
    [
        ("password1", "the password is wrong"),
        ("tradeassay-1", "tradeassay verify"),
        ("Portfolio99", "Portfolio value"),
        ("2022-05-17-x", "on 2022-05-17 it rose"),
        ("100000.00a", "cash 100000.00 at the start"),
        ("贵州茅台股份有限公司密码", "贵州茅台 600519 " + json.dumps("贵州平安")),
        ("00000000-0000-0000-0000-00000000000a", "id 00000000-0000-0000"),
    ],
)
def test_a_word_a_number_or_a_common_beginning_is_nobodys_piece(key, honest):
    known = knowing(key)
    assert known.clean(honest.encode()).decode() == honest
    assert known.clean(f"<{key}>".encode()).decode() == f"<{REMOVED}>"


@pytest.mark.parametrize(
    "name",
    (
        *("OPENAI_KEY", "DB_PASS", "MYSQL_PWD", "SSH_PASSPHRASE", "GITHUB_PAT", "API_KEYS"),
        *("authToken", "accessToken", "clientSecret", "ACCESSTOKEN"),
    ),
)
def test_variables_that_hold_a_key_are_known_by_their_names(name):
    assert knowing(**{name: "a7Bq2Zx9Kd4Wm1Pv"}).values


def test_public_keys_and_folders_are_no_secrets():
    settings = dict.fromkeys(("MY_PUBLIC_KEY", "KEYBOARD", "BYPASS"), "a7Bq2Zx9Kd4Wm1Pv")
    settings |= {
        "OPERATOR_KEY": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8m",
        "PWD": "C:work-folder-1234",
    }
    assert not knowing(**settings, PARTITION_KEY="2024-01-31").values
    assert knowing(MYSQL_PWD="2024-01-31").values


@pytest.mark.parametrize(
    ("address", "password"),
    [
        ("postgresql://u:pa;ss,w0rd@h/db", "pa;ss,w0rd"),
        ("postgresql://u:it's1secret@h/db", "it's1secret"),
        ("postgresql+psycopg://u:p#ss/w0rd?9@h/db", "p#ss/w0rd?9"),
        ("https://h/feed#access_token=abc123def456", "abc123def456"),
        ("https://h:8080/x?mail=somebody1@example.org", None),
        ("http://a:80,http://b:81", None),
    ],
)
def test_passwords_in_addresses_may_have_any_sign(address, password):
    known = Secrets()
    known.add_address(address)
    assert bool(known.values) == (password is not None)
    assert password is None or known.clean(password.encode()) == REMOVED.encode()


def test_trees_and_errors_of_other_shapes_are_cleaned(known):
    pair = collections.namedtuple("pair", "a b")
    assert secrets.without_secrets([pair(KEY, 1)]) == [pair(REMOVED, 1)]
    for error in (OSError(2, f"no {KEY}", f"/x/{KEY}"), ExceptionGroup("two", [ValueError(KEY)])):
        secrets.scrub(error)
        assert KEY not in "".join(traceback.format_exception(error))
    odd = ValueError(f"no {KEY}", np.arange(3))  # what cannot be compared stays as it is
    secrets.scrub(odd)
    assert odd.args == (f"no {REMOVED}", odd.args[1])


def test_a_narrow_column_does_not_fold_a_key_into_view(known):
    shown = io.StringIO()
    Console(file=shown, width=20).print(StackedTable(("a", "b"), [("x", KEY)]))
    assert not any(KEY[at : at + 5] in shown.getvalue() for at in range(len(KEY) - 4))
