"""Opening the database: SQLite by default, PostgreSQL where several workers share it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, insert, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import NullPool

from tradeassay.arena.state import tables
from tradeassay.core.errors import DataError, UserError, require
from tradeassay.core.secrets import remember_address, without_secrets

_LOCK = 0x7461_6172
"""The key of PostgreSQL's advisory lock around the schema."""


def unreadable(db: str, error: DatabaseError) -> UserError:
    """Return what to say of a damaged SQLite file; any other error is raised again."""
    if not isinstance(error.orig, sqlite3.DatabaseError) or isinstance(error, OperationalError):
        raise error
    return UserError(f"'{db}' cannot be read: {error.orig}", hint="name another file, or bring a copy back")


def open_engine(url: str, *, durable: bool = True, called: str | None = None) -> Engine:
    """Return an engine for a database address or the path of an SQLite file; missing tables are created.

    Messages call it ``called``. Any number of processes may open an empty one at once.

    ``durable`` waits for the disk at every commit; without it a process can still be killed at any point, but
    a power cut may lose the last commits. Raises :class:`UserError` for an address that makes no sense or cannot
    be reached, and :class:`DataError` for a database of another version."""
    address = url if "://" in url else f"sqlite:///{Path(url).resolve()}"
    try:
        engine = _engine(address, durable)
        with engine.begin() as connection:
            # Nobody else changes the schema meanwhile: SQLite has taken its write lock.
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            known = inspect(connection).has_table(tables.schema.name)
            version = connection.execute(select(tables.schema.c.version)).scalar() if known else None
            tables.metadata.create_all(connection)
            if version is None:
                connection.execute(insert(tables.schema).values(version=tables.SCHEMA))
            elif version != tables.SCHEMA:
                raise DataError(
                    f"the arena's database has form {version}, this version of tradeassay writes {tables.SCHEMA}",
                    hint="start a new one, or use the version that wrote it",
                )
    except (ArgumentError, NoSuchModuleError) as error:
        raise UserError(
            f"'{url}' is not a database address", hint="name a file, or postgresql+psycopg://user@host/name"
        ) from error
    except OperationalError as error:
        raise UserError(f"the database cannot be opened: {error.orig}", hint="check its address") from error
    except DatabaseError as error:
        raise unreadable(called or url, error) from error
    return engine


def _engine(address: str, durable: bool) -> Engine:
    remember_address(address)
    parsed = make_url(address)
    if parsed.get_backend_name() == "postgresql":
        require("psycopg", "postgres")
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        # A server that has gone is noticed before a statement is lost to it.
        engine = create_engine(parsed, pool_pre_ping=True)
    else:
        # A pool of one file's connections would only hide who holds the write lock.
        engine = create_engine(parsed, poolclass=NullPool if parsed.database in (None, "", ":memory:") else None)
        event.listen(engine, "begin", _begin_immediate)

    def prepare(connection: Any, _record: Any) -> None:
        if engine.dialect.name == "postgresql":
            if not durable:
                with connection.cursor() as cursor:
                    cursor.execute("SET synchronous_commit = off")
                connection.commit()
            return
        connection.isolation_level = None  # the driver's own BEGIN comes too late; ours is in _begin_immediate
        wait = "FULL" if durable else "NORMAL"
        for pragma in ("journal_mode=WAL", f"synchronous={wait}", "foreign_keys=ON", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {pragma}").close()

    event.listen(engine, "connect", prepare)
    event.listen(engine, "before_cursor_execute", _clean_parameters, retval=True)
    return engine


def _clean_parameters(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    """Keep configured secrets out of the database, whoever writes."""
    return statement, without_secrets(parameters)


def _begin_immediate(connection: Any) -> None:
    # A transaction that reads first and writes later could find the file changed in between and fail; taking the
    # write lock at once cannot. Readers that ask for it get a plain one, so that they never wait for writers.
    plain = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if plain else "BEGIN IMMEDIATE")
