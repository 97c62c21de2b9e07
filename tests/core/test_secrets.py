"""Configured secrets are removed in every spelling; what merely looks like one stays and is counted."""

import base64
import binascii
import bz2
import codecs
import gzip
import io
import json
import logging
import lzma
import operator
import random
import sys
import textwrap
import zlib
from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeassay.core import secrets
from tradeassay.core.drive import fault_of
from tradeassay.core.screen import clean_log, clean_screen
from tradeassay.core.secrets import REMOVED, Secrets

KEY = "sk-proj-Qz7_wR4tYk2Lm9Xc5Vb8Nh3Jg6+Fd1/Sa0PoIu"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    made = Secrets()
    made.add(KEY)
    monkeypatch.setattr(secrets, "KNOWN", made)
    return made


def spellings(key: str) -> list[str]:
    raw = key.encode()
    texts = [
        key,
        key[::-1],
        key.upper(),
        key.lower(),
        key.swapcase(),
        raw.hex(),
        raw.hex().upper(),
        json.dumps(key),
    ]
    texts += [quote(key, safe=""), *(one.join(key) for one in (" ", "-", ", ", "\n", "\u200b", "\\u200b", "\\n"))]
    texts += [
        "".join(form % sign for sign in raw) for form in ("%%%02X", "%%25%02X", "\\u%04x", "\\\\x%02x", "&#x%x;")
    ]
    texts += [raw.hex(":"), raw.hex(" "), " ".join(f"0x{sign:02x}" for sign in raw), codecs.encode(key, "rot13")]
    texts += ["".join(chr(ord(sign) + 0xFEE0) for sign in key), base64.b32encode(raw).decode()]
    texts += [base64.b64encode(base64.b64encode(raw)).decode(), base64.b64encode(raw.hex().encode()).decode()]
    texts += ["\\n".join(base64.b64encode(raw).decode()[at : at + 10] for at in range(0, 60, 10))]
    for before in ("", "u", "u:", "Bearer ", "user:"):
        for after in ("", "\n", "!!"):
            whole = (before + key + after).encode()
            texts += [base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode()]
    return texts


def longest_left(text: str, key: str) -> int:
    low, known = text.lower(), key.lower()
    return max(n for n in range(len(key) + 1) for at in range(len(key) - n + 1) if known[at : at + n] in low)


@pytest.mark.parametrize("spelled", spellings(KEY))
def test_every_spelling_goes(known: Secrets, spelled: str) -> None:
    cleaned = known.clean(f'{{"seen": "{spelled}", "rest": 1}}'.encode()).decode()
    assert REMOVED in cleaned and cleaned.startswith('{"seen": "') and cleaned.endswith('", "rest": 1}')
    core = base64.b64encode(KEY.encode())[4:-4].decode()
    assert spelled not in cleaned and core not in cleaned
    assert len(cleaned) - len(REMOVED) - 22 <= max(20, len(spelled) // 4), "at most the ends of groups are left"


@pytest.mark.parametrize("form", ["%d, ", "%03o "])
def test_numbers_become_zeros_and_json_stays_json(known: Secrets, form: str) -> None:
    numbers = "".join(form % sign for sign in KEY.encode()).rstrip(", ")
    text = json.dumps({"seen": numbers}) if form != "%d, " else f'{{"seen": [{numbers}]}}'
    cleaned = known.clean(text.encode()).decode()
    assert json.loads(cleaned)["seen"] and str(ord("Q")) not in cleaned and cleaned.count("0") > 30


@given(st.integers(8, 34), st.integers(12, 40), st.text(max_size=20), st.text(max_size=20))
def test_any_piece_of_twelve_goes(start: int, size: int, before: str, after: str) -> None:
    known = Secrets()
    known.add(KEY)
    piece = KEY[start : start + size]
    if len(piece) < 12:
        return
    raw = (before + piece + after).encode("utf-8", "surrogatepass")
    assert piece.encode() not in known.clean(raw)


def test_half_of_a_shorter_key_goes() -> None:
    known = Secrets()
    known.add("a7Bq2Zx9Kd4Wm1Pv")
    assert known.clean(b"it begins a7Bq2Zx9 and so on") == f"it begins {REMOVED} and so on".encode()
    assert known.clean(b"it begins a7Bq") == b"it begins a7Bq"


def test_torn_over_fields_it_goes_all_the_same(known: Secrets) -> None:
    fields = {f"part{at}": KEY[at : at + 8] for at in range(0, len(KEY), 8)}
    cleaned = known.clean(json.dumps(fields).encode(), shreds=True).decode()
    assert set(json.loads(cleaned)) == set(fields)
    assert longest_left(cleaned, KEY) < 6


@pytest.mark.parametrize("size", [3, 5, 6, 12])
@pytest.mark.parametrize("order", [1, -1])
def test_torn_in_any_order(known: Secrets, size: int, order: int) -> None:
    pieces = [KEY[at : at + size] for at in range(0, len(KEY), size)][::order]
    for torn in (pieces, {f"part {at}": piece for at, piece in enumerate(pieces)}):
        cleaned = known.clean(json.dumps({"error": torn}).encode(), shreds=True)
        assert len(json.loads(cleaned)["error"]) == len(pieces) and longest_left(cleaned.decode(), KEY) < 6


@pytest.mark.parametrize("encode", [base64.b85encode, base64.a85encode])
@pytest.mark.parametrize("before", ["", "u", "u:", "key", "Bearer "])
def test_base85_goes_wherever_the_key_begins(
    known: Secrets, encode: Callable[[bytes], bytes], before: str
) -> None:
    spelled = encode(f"{before}{KEY}!!".encode()).decode()
    cleaned = json.loads(known.clean(json.dumps({"seen": spelled, "rest": 1}).encode()))
    assert REMOVED in cleaned["seen"] and cleaned["rest"] == 1
    assert longest_left(cleaned["seen"], spelled) < 20, (
        "a quarter of it may be left: the prefix, and broken groups"
    )
    honest = encode(b"the quick brown fox jumps over the lazy dog, twice a day")
    assert known.clean(honest) == honest


def told_by_a_server(key: str) -> list[str]:
    raw = key.encode()
    packed = [
        zlib.compress(raw),
        gzip.compress(raw, mtime=0),
        zlib.compress(json.dumps({"key": f"Bearer {key}"}).encode()),
    ]
    texts = [base64.b64encode(one).decode() for one in packed] + [one.hex() for one in packed]
    texts += [between.join(key) for between in ("x", "xy", "abc")] + ["".join(sign * 2 for sign in key)]
    texts += ["".join(f"{sign}{at % 10}" for at, sign in enumerate(key)), base64.b32hexencode(raw).decode()]
    texts += [base64.b64encode(raw).decode()[::-1], base64.b64encode(raw[::-1]).decode(), raw[::-1].hex()]
    texts += [base64.b64encode(key.encode("utf-16-le")).decode(), "".join(f"\\{sign:06x}" for sign in raw)]
    return [*texts, base64.b64encode(base64.b64encode(base64.b64encode(raw))).decode()]


def told_by_proxies(key: str) -> list[str]:
    """What servers, proxies, mail, pages, terminals and loggers make of a header: some or all signs as codes."""
    raw, some = key.encode(), random.Random(5)

    def coded(form: str, share: float = 1.0) -> str:
        return "".join(form % sign if some.random() < share else chr(sign) for sign in raw)

    def in64(text: str | bytes) -> str:
        return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()

    texts = [coded(form, 0.4) for form in ("%%%02X", "%%25%02X", "\\u%04x", "\\x%02x", "&#%d;", "=%02X")]
    forms = (
        "%%2525%02X",
        "%%u%04X",
        "\\u{%x}",
        "\\x{%x}",
        "\\U%08x",
        "\\%o",
        "&#%05d;",
        "&amp;#x%02x;",
        "&#%d;",
        "=%02X",
    )
    texts += [*map(coded, forms), json.dumps(json.dumps(coded("\\u%04x")))]
    texts += [
        gap.join(key) for gap in ("&shy;", "&#8203;", "&ZeroWidthSpace;", "%E2%80%8B", "\x1b[31m", "\0", "\xad")
    ]
    tags = "<wbr>", "<br/>", '<span class="hl">', "=\r\n", "\x1b[0m\x1b[1m", "**", "\r\n\t"
    texts += [tag.join(key[at : at + 6] for at in range(0, len(key), 6)) for tag in tags]
    texts += ["".join(f'<text x="{12 * at}">{sign}</text>' for at, sign in enumerate(key))]
    texts += [key.replace("-", "&hyphen;").replace("_", "&lowbar;").replace("+", "&plus;").replace("/", "&sol;")]
    texts += ["".join(chr(0x1D5BA + ord(sign) - 97) if sign.islower() else sign for sign in key.lower())]
    texts += [f"{key[:17]}******{key[-9:]}", f"...{key[-8:]}", f"{key[:16]}...", in64(f"***{key[-9:]}")]
    inner = [
        coded("%%%02X"),
        coded("\\u%04x"),
        coded("&#%d;"),
        " ".join(key),
        key.upper(),
        raw.hex(":"),
        in64(in64(key)),
    ]
    inner += [raw.hex()[::-1], f"k {in64(f'api:{key}')}", "".join(f"\0{sign}" for sign in key)]
    texts += map(in64, inner)
    header = json.dumps({"headers": {"authorization": f"Bearer {key}"}}).encode()
    packed = [pack(header) for pack in (bz2.compress, lzma.compress, lambda one: zlib.compress(one)[2:-4])]
    texts += [in64(one) for one in packed] + [one.hex() for one in packed]
    texts += [
        in64(key).encode().hex(),
        raw.hex().encode().hex(),
        key.encode("utf-16-le").hex(),
        in64(key[:20] + key[20:]),
    ]
    request = f"POST /v1 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\nx: 1\r\n\r\n{{}}"
    jwt = base64.urlsafe_b64encode(json.dumps({"sub": 1, "api_key": coded("\\u%04x")}).encode()).decode()
    return [*texts, "\n".join(textwrap.wrap(in64(request), 60)), f"eyJhbGciOiJIUzI1NiJ9.{jwt}.c2ln"]


@pytest.mark.parametrize("at", range(len(told_by_proxies(KEY))))
def test_codes_and_packing_hide_nothing(known: Secrets, at: int) -> None:
    """What is left may not depend on the key: another key of the same form leaves the same."""
    twin = KEY[:8] + KEY[8:].translate(str.maketrans("Qz7wR4tYk2Lm9Xc5", "Rx3vT8sWj6Np1Yd2"))
    left, made = [], Secrets()
    made.add(twin)
    for key, screen in ((KEY, known), (twin, made)):
        told = told_by_proxies(key)[at]
        body = json.dumps({"error": {"message": f"bad key {told} given"}, "n": 1}).encode()
        cleaned = json.loads(screen.clean(body, shreds=True))["error"]["message"]
        assert REMOVED in cleaned and cleaned.endswith(" given")
        left.append(cleaned.replace(REMOVED, "~"))
    same = sum(map(operator.eq, *left))
    assert len(left[0]) - same <= len(KEY) // 3


@pytest.mark.parametrize("told", told_by_a_server(KEY))
def test_what_a_server_makes_of_it_goes(known: Secrets, told: str) -> None:
    text = json.dumps({"error": {"message": f"bad key {told} given"}, "n": 1}).encode()
    cleaned = json.loads(known.clean(text, shreds=True))
    assert REMOVED in cleaned["error"]["message"] and cleaned["n"] == 1
    assert len(cleaned["error"]["message"]) - len(REMOVED) - 14 <= len(told) // 2


@pytest.mark.parametrize(
    "honest",
    [
        base64.b64encode(zlib.compress(b"a chart of somebody's prices, compressed " * 20)),
        base64.b64encode(gzip.compress(bytes(100_000), mtime=0)),
        "％２０２４年，Ａ股：<b>涨</b> &amp; %20%2F=3D &#8217;s \\u8d35\\u5dde ＣＰＩ, sha256 ".encode()
        + b"ab12" * 16,
        b"eJumps over the lazy dog and H4sIxteen more words that begin like something else",
        b"789c" + b"0f" * 40,
        "".join(f"{one:08.3f} " for one in range(3000)).encode(),
    ],
)
def test_honest_texts_that_look_alike_stay(known: Secrets, honest: bytes) -> None:
    assert known.clean(honest, shreds=True) == honest


def test_what_is_not_found_is_known(known: Secrets) -> None:
    irregular = "".join(sign + "xyz"[: at % 4] for at, sign in enumerate(KEY))
    moved = "".join(chr(ord(sign) + 1) for sign in KEY)
    mailed = binascii.b2a_uu(KEY[:45].encode()).decode()
    words = " ".join("0x" + KEY[at : at + 4].encode().hex() for at in range(0, 40, 4))
    one_by_one = "".join(f'data: {{"choices":[{{"delta":"{sign}"}}]}}\n\n' for sign in KEY)
    for hidden in (irregular, moved, KEY[::2] + KEY[1::2], mailed, words, one_by_one):
        assert known.clean(hidden.encode(), shreds=True) == hidden.encode()


def test_json_stays_json() -> None:
    known = Secrets()
    known.add('pa"ss\\wo\trd-1234-xyz')
    for text in ('pa"ss\\wo\trd-1234-xyz', 'before "pa"ss\\wo\trd-1234-xyz" after\\'):
        line = msgspec.json.encode({"a": text, "b": json.dumps(text)})
        assert "1234" not in json.loads(known.clean(line))["a"]


def test_words_short_values_paths_and_public_beginnings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Secrets()
    settings = {
        "A_API_KEY": "none", "B_TOKEN": "", "C_SECRET": "password", "D_SECRET_FILE": "/run/secrets/some/file",
        "MAX_TOKENS": "32768-abc-1234567", "E_TOKEN": "123456789012345", "F_KEYBOARD": "qwertz-1234567890",
    }  # fmt: skip
    known.add_settings(settings)
    assert not known
    known.add(KEY)
    plain = b"keys begin with sk-proj- here, the password is none, and 32768-abc-1234567 is not one"
    assert known.clean(plain) is plain
    known.add_settings({"G_API_KEY": "super-secret-key-value"})
    assert known.clean(b"super-secret-key") == b"super-secret-key"
    assert known.clean(b"it is super-secret-key-value.") == f"it is {REMOVED}.".encode()


def test_passwords_inside_addresses_are_secrets() -> None:
    known = Secrets()
    known.add_settings({"HTTPS_PROXY": "http://me:pr0xy%2Fpa55@proxy:80"})
    known.add_address("postgresql://arena:hunter22@db/x")
    for password in (b"pr0xy/pa55", b"pr0xy%2Fpa55", b"hunter22"):
        assert known.clean(b"at " + password + b"!") == f"at {REMOVED}!".encode()


def test_an_authorization_is_its_token() -> None:
    known = Secrets()
    known.add("Bearer abc123def456ghi789")
    assert known.clean(b"abc123def456ghi789 Bearer") == f"{REMOVED} Bearer".encode()


def test_lookalikes_are_counted_and_kept(known: Secrets) -> None:
    text = "use sk-0123456789abcdef0123, or Authorization: Bearer 0123456789abcdefghij"
    assert secrets.clean_words(text) == text
    assert known.lookalikes == 2
    assert "look like a key" in str(secrets.lookalikes())


def test_errors_are_scrubbed_with_what_they_wrap(known: Secrets) -> None:
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
        assert error.message == str(error) == f"outer {REMOVED}" and str(error.__cause__) == f"inner {REMOVED}"


def test_screen_and_log_show_nothing(known: Secrets, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert f"with {REMOVED}" in written.getvalue() and f"ValueError: {REMOVED}" in written.getvalue()
    assert KEY not in written.getvalue() + shown.out + shown.err


def test_nothing_is_copied_where_there_is_nothing(known: Secrets) -> None:
    tree = {"a": [1, "b", {"c": ("d", None)}]}
    assert secrets.clean_tree(tree) is tree
    text = "plain"
    assert secrets.clean_text(text) is text


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
def test_addresses_and_commands_with_a_key_in_them_are_known(text: str, held: bool) -> None:
    assert secrets.holds_key(text) is held
