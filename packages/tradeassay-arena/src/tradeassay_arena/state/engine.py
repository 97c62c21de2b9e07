"""Open the database: SQLite by default, PostgreSQL if several workers share it.

Readers use :func:`reading_engine`, which changes nothing. Only :func:`open_engine` creates the
arena's tables. On SQLite, it creates them only in an empty file.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import NullPool

from tradeassay.core.errors import DataError, TradeassayWarning, UserError, require
from tradeassay.core.secrets import remember_address, without_secrets
from tradeassay_arena.state import tables

_LOCK = 0x7461_6172
"""The key of PostgreSQL's advisory lock for changes of the schema."""


def unreadable(db: str, error: DatabaseError) -> UserError:
    """Return a :class:`UserError` for a damaged SQLite file. Raises any other error again."""
    if not isinstance(error.orig, sqlite3.DatabaseError) or isinstance(error, OperationalError):
        raise error
    return UserError(
        f"'{db}' cannot be read: {error.orig}", hint="name another file, or copy back a backup"
    )


def open_engine(url: str, *, durable: bool = True, called: str | None = None) -> Engine:
    """Return an engine for a database address or an SQLite file, and create missing tables.

    Messages name the database ``called``. Any number of processes may open an empty database at
    once. An SQLite file with another program's tables is refused and not changed. Any other SQLite
    file becomes readable by its owner alone, because it contains the contacts of applicants.

    With ``durable`` every commit waits for the disk. Without it a process can still be killed at
    any point, but a power cut may lose the last commits.

    Raises :class:`UserError` for an address that is invalid or cannot be reached, and
    :class:`DataError` for a database of another version.
    """
    with _explained(url, called or url):
        parsed = _parsed(url)
        _refuse_foreign(parsed, called or url)
        _make_private(parsed)
        engine = _engine(parsed, durable)
        with engine.begin() as connection:
            # Nobody else can change the schema now: SQLite has taken its write lock.
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            known = inspect(connection).has_table(tables.schema.name)
            version = _version(connection) if known else None
            tables.metadata.create_all(connection)
            if version is None:
                connection.execute(insert(tables.schema).values(version=tables.SCHEMA))
    return engine


def reading_engine(url: str) -> Engine:
    """Return an engine that reads an arena's database. It changes nothing and leaves no other
    files.

    Raises :class:`UserError` for a file that is not an arena's database, and for an address that is
    invalid or cannot be reached. Raises :class:`DataError` for a database of another version.
    """
    with _explained(url, url):
        parsed = _parsed(url)
        engine = _engine(parsed, durable=True, reading=True)
        with engine.connect() as connection:
            missing = tables.metadata.tables.keys() - set(inspect(connection).get_table_names())
            if missing:
                what = f"'{url}' is not an arena's database: it has no table '{min(missing)}'"
                raise UserError(
                    what, hint="name the database of an arena; tradeassay arena run makes one"
                )
            _version(connection)
    return engine


def existing_engine(url: str) -> Engine:
    """Return an engine that writes to an existing arena database. Raises the errors of
    :func:`reading_engine`.
    """
    reading_engine(url).dispose()
    return open_engine(url)


def unlocked(file: Path) -> bool:
    """Return whether no writer has an SQLite file open. A writer would have files next to it.

    A file without a writer is opened as immutable, because even a reader would leave files next to
    it.
    """
    return not any(Path(f"{file}{ending}").exists() for ending in ("-wal", "-journal"))


def _version(connection: Connection) -> int | None:
    """Return the version of an arena's tables, or None while the tables are being created.

    Raises :class:`DataError` for another version.
    """
    version = connection.execute(select(tables.schema.c.version)).scalar()
    if version not in (None, tables.SCHEMA):
        raise DataError(
            f"the arena's database has version {version}, this version of tradeassay writes "
            f"{tables.SCHEMA}",
            hint="start a new one, or use the version that wrote it",
        )
    return version


def _parsed(url: str) -> URL:
    address = url if "://" in url else f"sqlite:///{Path(url).resolve()}"
    remember_address(address)
    return make_url(address)


@contextmanager
def _explained(url: str, called: str) -> Iterator[None]:
    """Turn the errors of opening a database into a :class:`UserError` of one line."""
    try:
        yield
    except (ArgumentError, NoSuchModuleError) as error:
        raise UserError(
            f"'{url}' is not a database address",
            hint="name a file, or postgresql+psycopg://user@host/name",
        ) from error
    except OperationalError as error:
        raise _denied(url) or UserError(
            f"the database cannot be opened: {error.orig}", hint="check its address"
        ) from error
    except DatabaseError as error:
        raise unreadable(called, error) from error


def _denied(url: str) -> UserError | None:
    """Return an error if this user lacks the permission to read an SQLite file, else None."""
    file = _file_of(_parsed(url))
    if file is None or not file.is_file():
        return None
    if not os.access(file, os.R_OK):
        return UserError(
            f"'{url}' may be read by its owner alone", hint="run the command as that user"
        )
    log, index = Path(f"{file}-wal"), Path(f"{file}-shm")
    if log.exists() and not index.exists() and not os.access(file.parent, os.W_OK):
        what = (
            f"'{url}' has a write-ahead log, which SQLite reads only in a folder that it may write"
        )
        return UserError(what, hint=f"copy {file.name} and {log.name} into your own folder")
    return None


def _refuse_foreign(parsed: URL, called: str) -> None:
    """Raise :class:`UserError` for an SQLite file with another program's tables."""
    file = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not file.is_file():
        return
    try:
        with closing(_connect_reading(file)) as connection:
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
    except sqlite3.Error:
        return  # opening the file for writing reports why it cannot be read
    names = {name for (name,) in found}
    if names and tables.schema.name not in names:
        what = f"'{called}' is not an arena's database: it holds a table '{min(names)[:80]}'"
        raise UserError(what, hint="name another file; a new one is made")


def _file_of(parsed: URL) -> Path | None:
    """Return the SQLite file of an address, or None for another kind of database."""
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))


def _make_private(parsed: URL) -> None:
    """Make an SQLite file, and the files next to it, readable by its owner alone. Creates a missing
    file.

    SQLite gives a writer's files the permissions of the database, so later files have them too.
    """
    file = _file_of(parsed)
    if file is None:
        return
    with suppress(OSError):  # the file exists, or its folder does not: SQLite reports the latter
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for ending in ("", "-wal", "-shm", "-journal"):
        part = Path(f"{file}{ending}")
        with suppress(FileNotFoundError):
            mode = readable_by_others(part)
            if mode is None:
                continue
            try:
                part.chmod(mode & stat.S_IRWXU)
            except PermissionError:  # another user's
                warn_readable_by_others(part, mode)


def readable_by_others(file: Path) -> int | None:
    """Return a file's permissions if other users may read or write it, or None otherwise."""
    mode = stat.S_IMODE(file.stat().st_mode)
    return mode if mode & (stat.S_IRWXG | stat.S_IRWXO) else None


def warn_readable_by_others(file: Path, mode: int) -> None:
    """Warn that other users may read the contacts of applicants in a database."""
    what = (
        f"other users of this machine may open {file} (mode {mode:04o}), which contains the "
        "contacts of applicants"
    )
    warnings.warn(f"{what}; run chmod 600 {file}", TradeassayWarning, stacklevel=3)


def _connect_reading(file: Path) -> sqlite3.Connection:
    how = "immutable=1" if unlocked(file) else "mode=ro"
    return sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True, check_same_thread=False)


def _engine(parsed: URL, durable: bool, *, reading: bool = False) -> Engine:
    if parsed.get_backend_name() == "postgresql":
        require("psycopg", "postgres")
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        # Detects a lost server before a statement is sent to it.
        engine = create_engine(parsed, pool_pre_ping=True)
    else:
        # A pool of one file's connections would only hide who holds the write lock.
        file = _file_of(parsed)
        how: dict[str, Any] = {"poolclass": NullPool} if file is None else {}
        if reading and file is not None:
            how["creator"] = lambda: _connect_reading(file)
        engine = create_engine(parsed, **how)
        event.listen(engine, "begin", _begin if reading else _begin_immediate)

    def prepare(connection: Any, _record: Any) -> None:
        if engine.dialect.name == "postgresql":
            settings = [] if durable else ["SET synchronous_commit = off"]
            settings += ["SET default_transaction_read_only = on"] if reading else []
            for setting in settings:
                with connection.cursor() as cursor:
                    cursor.execute(setting)
                connection.commit()
            return
        connection.isolation_level = (
            None  # the driver's own BEGIN comes too late; ours is in _begin_immediate
        )
        if reading:
            connection.execute("PRAGMA busy_timeout=30000").close()
            return
        wait = "FULL" if durable else "NORMAL"
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={wait}",
            "foreign_keys=ON",
            "busy_timeout=30000",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    event.listen(engine, "connect", prepare)
    event.listen(engine, "before_cursor_execute", _clean_parameters, retval=True)
    return engine


def _clean_parameters(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    """Remove configured secrets from the parameters of every statement."""
    return statement, without_secrets(parameters)


def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_immediate(connection: Any) -> None:
    # A transaction that reads first and writes later could find that the file has changed, and
    # fail. Taking the write lock at once prevents that. Transactions that only read start without
    # it, so they never wait for writers.
    plain = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if plain else "BEGIN IMMEDIATE")
